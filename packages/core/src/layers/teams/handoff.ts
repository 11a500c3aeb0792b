import { concatMap, EMPTY, map, type Observable, of, takeLast } from 'rxjs';
import type { Agent } from '../../agent.js';
import { history as said, historyIn } from '../../memories/conversation.js';
import type { CallOptions } from '../../call/call-options.js';
import { createStep, type OutputOf } from '../../call/callable.js';
import { type MillraceError, misuse } from '../../values/errors.js';
import type { Input, InputMessage } from '../../seams/input.js';
import { isRecord } from '../../values/json.js';
import { isContentBlock, textBlock } from '../../values/message.js';
import { earlierMessages } from '../../call/run-call.js';
import {
  checkOptions,
  isFunction,
  isObject,
  isText,
  listOf,
  type Rule,
  wholeNumber,
} from '../../values/options.js';
import type { Reply, ToolRun } from '../../values/reply.js';
import type { InputSchema } from '../../values/schema.js';
import { jsonSchema } from '../../schema/index.js';
import { toolOutput } from '../../values/tool-output.js';
import { tool } from '../../tools/tool.js';
import { addTools } from '../select-tools.js';
import type { Tool } from '../../tools/types.js';
import { asAgent, type StepAgentOptions, stepAgentRules } from './as-agent.js';
import { checkAgents, checkNames, inTurns$, messagesIn } from './take-turns.js';
import { fitName, fitNames, oneLine } from './agent-tool.js';

/** What an agent is made of whose conversations move between agents. */
export interface HandoffOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
> extends StepAgentOptions<Output> {
  readonly agents: readonly Member[];
  /** Who begins a conversation, by name. Default: the first. */
  readonly start?: string;
  /** What the next one is shown. Default: `carryWords`. */
  readonly filter?: HandoffFilter;
  /** How often a call may move; who has it then keeps it, and is shown nobody to hand it to. Default: 10. */
  readonly maxHandoffs?: number;
  /** Who may hand over to whom, by name; who is not in it may to nobody. Default: all to all. */
  readonly allow?: Readonly<Record<string, readonly string[]>>;
}

/**
 * Makes an agent of several, between which its conversations move: each is shown a tool for each other one, `transfer_to_…`, and who uses it has
 * spoken; the other one goes on with the conversation. Whoever has it speaks for the whole, to its user. In a session, the next message goes to who
 * answered last. An agent that is made of steps can be handed to, but hands over to nobody.
 */
export const handoff = <const Output extends InputSchema | undefined = undefined>(
  options: HandoffOptions<Output>,
): Agent<OutputOf<Output, unknown>> => {
  checkOptions('handoff()', options, rules, ['agents']);
  const { agents, start, filter = carryWords, maxHandoffs = 10, allow, ...own } = options;
  const transfers = createTransfers(agents, allow);
  const names = [...transfers.agents.keys()];
  if (start !== undefined && !names.includes(start)) {
    throw nobody('start', start, names);
  }
  const play: Play = { transfers, filter, maxHandoffs };
  const step = createStep((input, given) => {
    const history = historyIn(given.use) ?? [];
    const active = lastOf(history, names) ?? start ?? names[0] ?? '';
    return inTurns$<Turn>({ active, history, input, moves: 0 }, (turn) =>
      'reply' in turn ? EMPTY : spoken$(turn, given, play),
    ).pipe(
      takeLast(1),
      concatMap((turn) => ('reply' in turn ? of(turn.reply) : EMPTY)),
    );
  });
  return asAgent<typeof step, Output>(step, { name: 'handoff', ...own });
};

/** Whose turn it is, and with what; or how it ended. */
type Turn = OpenTurn | { readonly reply: Reply };

interface OpenTurn {
  readonly active: string;
  readonly history: readonly InputMessage[];
  readonly input: Input;
  readonly moves: number;
}

interface Play {
  readonly transfers: Transfers;
  readonly filter: HandoffFilter;
  readonly maxHandoffs: number;
}

/** Who had the conversation last. */
const lastOf = (history: readonly InputMessage[], names: readonly string[]): string | undefined => {
  const said = history.findLast(
    (it) => it.role === 'assistant' && it.name !== undefined && names.includes(it.name),
  );
  return said?.role === 'assistant' ? said.name : undefined;
};

/** Lets the one speak who has the conversation. */
const spoken$ = (turn: OpenTurn, given: CallOptions, play: Play): Observable<Turn> => {
  const { active, history, input, moves } = turn;
  const { transfers, maxHandoffs } = play;
  const agent = transfers.agents.get(active);
  if (agent === undefined) throw nobody('start', active, [...transfers.agents.keys()]);
  const tools = moves < maxHandoffs ? transfers.toolsOf(active) : [];
  const isNew = history.length === 0 && historyIn(given.use) === undefined;
  const before = isNew ? [] : said(history);
  const layers = [before, ...(tools.length === 0 ? [] : [addTools(...tools)])];
  return agent.call$(input, { ...given, use: [...(given.use ?? []), ...layers] }).pipe(
    map((reply): Turn => {
      const move = transfers.moveIn(reply);
      // Whoever speaks within a member, the member has the conversation.
      return move === undefined
        ? { reply: { ...reply, name: active } }
        : moved(turn, reply, move, play);
    }),
  );
};

const moved = (
  { active: from, history, input, moves }: OpenTurn,
  reply: Reply,
  { to, reason }: Move,
  { filter, transfers }: Play,
): OpenTurn => {
  const said = earlierMessages(reply).map(({ content }): InputMessage => ({
    role: 'assistant',
    name: from,
    content: content.filter(isContentBlock),
  }));
  const why = reason === undefined || reason.trim() === '' ? '' : ` ${reason}`;
  const leaving: InputMessage = {
    role: 'assistant',
    name: from,
    content: [textBlock(`I hand over to ${to}.${why}`)],
  };
  const toolUses = reply.toolUses.filter(({ name }) => !transfers.isTransfer(name));
  const carried = filter([...history, ...messagesIn(input), ...said, leaving], {
    from,
    to,
    toolUses,
    ...(reason === undefined ? {} : { reason }),
  });
  if (carried.length === 0) throw nothingCarried();
  const at = lastOfUser(carried);
  return { active: to, history: carried.slice(0, at), input: carried.slice(at), moves: moves + 1 };
};

const nothingCarried = () =>
  misuse(
    "handoff(): the 'filter' has left nothing of the conversation. Leave what a user has said last.",
  );

const rules: Readonly<Record<keyof HandoffOptions, Rule>> = {
  ...stepAgentRules,
  agents: listOf('agents with their descriptions'),
  start: isText,
  filter: isFunction,
  maxHandoffs: wholeNumber(0),
  allow: isObject,
};

/** One of those between whom a conversation moves. */
export interface Member {
  /** Has a name of its own: by it the conversation tells who had it last. */
  readonly agent: Agent;
  /** Tells the others what it is for. */
  readonly description: string;
}

interface Move {
  readonly to: string;
  readonly reason?: string;
}

/** Agents between which a conversation moves. */
interface Transfers {
  readonly agents: ReadonlyMap<string, Agent>;
  /** The tools by which an agent hands over. */
  toolsOf(name: string): readonly Tool[];
  isTransfer(toolName: string): boolean;
  /** Where a reply of an agent's hands the conversation to. */
  moveIn(reply: Reply): Move | undefined;
}

/** Makes the tools by which agents hand conversations over. `allow` says who may to whom; by default all may to all. */
const createTransfers = (
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

const nobody = (option: string, name: string, names: readonly string[]): MillraceError =>
  misuse(`handoff(): '${option}' names '${name}'. The agents are: ${names.join(', ')}.`);

const isMember = (value: unknown): value is Member =>
  isRecord(value) && isRecord(value['agent']) && typeof value['description'] === 'string';

/** It says nothing itself: the words of whoever hands over are its last. */
const transferTool = (name: string, to: string, description: string): Tool =>
  tool({
    name,
    idempotent: true,
    description: `Hands the conversation over to ${oneLine(to)}, who answers from then on. ${oneLine(description)}`,
    input: jsonSchema({
      type: 'object',
      properties: {
        reason: { type: 'string', description: 'Why, and what the other one has to know.' },
      },
      additionalProperties: false,
    }),
    run: () => toolOutput({ content: [], finalAnswer: true }),
  });

/** A conversation that moves to another agent. */
export interface Handover {
  readonly from: string;
  readonly to: string;
  /** Why, in the words of who hands over. */
  readonly reason?: string;
  /** The tools that it has run, oldest first. */
  readonly toolUses: readonly ToolRun[];
}

/** Decides what the next agent is shown of a conversation: what users and agents have said, the last message of a user and what came behind it among it. It may leave out, change and add; the conversation goes on from what is left. */
export type HandoffFilter = (
  messages: readonly InputMessage[],
  handover: Handover,
) => readonly InputMessage[];

/** What was said, and nothing of the tools that others have used. */
export const carryWords: HandoffFilter = (messages) => messages;

/** What was said, and in words what the tools of who hands over have given. */
export const carryAll: HandoffFilter = (messages, { from, toolUses }) =>
  toolUses.length === 0
    ? messages
    : [...messages.slice(0, -1), toolsOf(from, toolUses), ...messages.slice(-1)];

/** What a user has said last, and what came behind it. */
export const carryLast: HandoffFilter = (messages) => messages.slice(lastOfUser(messages));

const lastOfUser = (messages: readonly InputMessage[]): number =>
  Math.max(
    0,
    messages.findLastIndex((it) => it.role === 'user'),
  );

const toolsOf = (name: string, toolUses: readonly ToolRun[]): InputMessage => ({
  role: 'assistant',
  name,
  content: [
    textBlock(
      toolUses
        .map((it) => {
          const result = it.isError ? `failed: ${it.output}` : `gave: ${it.output}`;
          return `I have used ${it.name}(${JSON.stringify(it.input)}), which ${result}`;
        })
        .join('\n'),
    ),
  ],
});
