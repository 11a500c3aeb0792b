import type { Agent } from '../agent.js';
import { type MillraceError, misuse } from '../errors.js';
import { isRecord } from '../json.js';
import type { Reply } from '../reply.js';
import { tool } from '../tool.js';
import { toolOutput } from '../tool-output.js';
import type { Tool } from '../tools/types.js';
import { checkAgents, checkNames } from './check-agents.js';
import { fitName, fitNames, oneLine } from './fit-name.js';

/** One of those between whom a conversation moves. */
export interface Member {
  /** Has a name of its own: by it the conversation tells who had it last. */
  readonly agent: Agent;
  /** Tells the others what it is for. */
  readonly description: string;
}

export interface Move {
  readonly to: string;
  readonly reason?: string;
}

/** Agents between which a conversation moves. */
export interface Transfers {
  readonly agents: ReadonlyMap<string, Agent>;
  /** The tools by which an agent hands over. */
  toolsOf(name: string): readonly Tool[];
  isTransfer(toolName: string): boolean;
  /** Where a reply of an agent's hands the conversation to. */
  moveIn(reply: Reply): Move | undefined;
}

/** Makes the tools by which agents hand conversations over. `allow` says who may to whom; by default all may to all. */
export const createTransfers = (
  members: readonly Member[],
  allow?: Readonly<Record<string, readonly string[]>>,
): Transfers => {
  if (members.length === 0 || !members.every(isMember)) throw noMembers();
  const all = members.map(({ agent }) => agent);
  checkAgents('handoff()', all, 1);
  checkNames('handoff()', all);
  const agents = new Map(all.map((agent) => [agent.name, agent]));
  const names = [...agents.keys()];
  const allowed = new Map(Object.entries(allow ?? {}));
  const unknown = [...allowed].flat(2).find((name) => !agents.has(name));
  if (unknown !== undefined) throw nobody('allow', unknown, names);
  const toolNames = fitNames(names.map((name) => `transfer_to_${fitName(name)}`));
  const tools = members.map(({ agent, description }, index) => ({
    to: agent.name,
    tool: transferTool(toolNames[index] ?? '', agent.name, description),
  }));
  const mayHand = (from: string, to: string): boolean =>
    from !== to && (allow === undefined || allowed.get(from)?.includes(to) === true);
  return {
    agents,
    toolsOf: (from) => tools.filter(({ to }) => mayHand(from, to)).map((it) => it.tool),
    isTransfer: (name) => toolNames.includes(name),
    moveIn: ({ reason, toolUses }) => {
      const moves = reason === 'toolFinal' ? toolUses.filter(({ isError }) => !isError) : [];
      const [move] = moves.flatMap(({ name, input }) => {
        const transfer = tools.find((it) => it.tool.name === name);
        if (transfer === undefined) return [];
        const why = input['reason'];
        return [{ to: transfer.to, ...(typeof why === 'string' && { reason: why }) }];
      });
      return move;
    },
  };
};

const noMembers = (): MillraceError =>
  misuse(
    "handoff(): 'agents' takes a list of those it moves between: { agent, description: 'what it is for' }.",
  );

export const nobody = (option: string, name: string, names: readonly string[]): MillraceError =>
  misuse(`handoff(): '${option}' names '${name}'. The agents are: ${names.join(', ')}.`);

const isMember = (value: unknown): value is Member =>
  isRecord(value) && isRecord(value['agent']) && typeof value['description'] === 'string';

/** It says nothing itself: the words of whoever hands over are its last. */
const transferTool = (name: string, to: string, description: string): Tool =>
  tool({
    name,
    idempotent: true,
    description: `Hands the conversation over to ${oneLine(to)}, who answers from then on. ${oneLine(description)}`,
    input: {
      type: 'object',
      properties: {
        reason: { type: 'string', description: 'Why, and what the other one has to know.' },
      },
      additionalProperties: false,
    },
    run: () => toolOutput({ content: [], finalAnswer: true }),
  });
