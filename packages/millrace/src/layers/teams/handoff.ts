import { concatMap, EMPTY, map, type Observable, of, takeLast } from 'rxjs';
import type { Agent } from '../../agent.js';
import { history as said, historyIn } from '../../memories/conversation.js';
import type { CallOptions } from '../../call/call-options.js';
import { createStep, type OutputOf } from '../../call/callable.js';
import { type MillraceError, misuse } from '../../values/errors.js';
import { type Input, type InputMessage, questionStart } from '../../seams/input.js';
import { isContentBlock, type Message, textBlock } from '../../values/message.js';
import { lastMessages } from './member-runs.js';
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
import { checkAgents, checkNames, iterate$, toMessages } from './take-turns.js';
import { checkMembers, fitName, fitNames, oneLine } from './agent-tool.js';
import { summaryOf } from './tool-summary.js';

export interface HandoffOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
> extends StepAgentOptions<Output> {
  readonly agents: readonly Member[];
  /** Name of the agent that starts a conversation. Default: the first. */
  readonly start?: string | undefined;
  /** Selects what the next agent sees. Default: `carryAll`. */
  readonly filter?: HandoffFilter | undefined;
  /** Maximum number of handoffs per call; the last agent gets no transfer tools. Default: 10. */
  readonly maxHandoffs?: number | undefined;
  /** Allowed handoffs by agent name; an agent that is not listed cannot hand over. Default: all to all. */
  readonly allow?: Readonly<Record<string, readonly string[]>> | undefined;
}

/**
 * Creates an agent whose conversations move between several agents. Each gets a tool `transfer_to_…` for every other
 * one; using it ends its turn, and the other agent continues the conversation. The active agent answers for the whole.
 * In a session, the next message goes to the agent that answered last. Agents made of steps only receive handoffs.
 */
export const handoff = <const Output extends InputSchema | undefined = undefined>(
  options: HandoffOptions<Output>,
): Agent<OutputOf<Output, unknown>> => {
  checkOptions('handoff()', options, rules, ['agents']);
  const { agents, start, filter = carryAll, maxHandoffs = 10, allow, ...own } = options;
  const transfers = createTransfers(agents, allow);
  const names = [...transfers.agents.keys()];
  if (start !== undefined && !names.includes(start)) {
    throw unknownAgent('start', start, names);
  }
  const settings: Settings = { transfers, filter, maxHandoffs };
  const step = createStep((input, given) => {
    const earlier = historyIn(given.use) ?? [];
    const active = lastOf(earlier, names) ?? start ?? names[0] ?? '';
    return iterate$<Turn>({ active, history: earlier, input, moves: 0 }, (turn) =>
      'reply' in turn ? EMPTY : takeTurn$(turn, given, settings),
    ).pipe(
      takeLast(1),
      concatMap((turn) => ('reply' in turn ? of(turn.reply) : EMPTY)),
    );
  });
  return asAgent<typeof step, Output>(step, { name: 'handoff', ...own });
};

type Turn = OpenTurn | { readonly reply: Reply };

interface OpenTurn {
  readonly active: string;
  readonly history: readonly InputMessage[];
  readonly input: Input;
  readonly moves: number;
}

interface Settings {
  readonly transfers: Transfers;
  readonly filter: HandoffFilter;
  readonly maxHandoffs: number;
}

const lastOf = (history: readonly InputMessage[], names: readonly string[]): string | undefined => {
  const message = history.findLast(
    (it) => it.role === 'assistant' && it.name !== undefined && names.includes(it.name),
  );
  return message?.role === 'assistant' ? message.name : undefined;
};

const takeTurn$ = (turn: OpenTurn, given: CallOptions, settings: Settings): Observable<Turn> => {
  const { active, history, input, moves } = turn;
  const { transfers, maxHandoffs } = settings;
  const agent = transfers.agents.get(active);
  if (agent === undefined) throw unknownAgent('start', active, [...transfers.agents.keys()]);
  const tools = moves < maxHandoffs ? transfers.toolsOf(active) : [];
  const isNew = history.length === 0 && historyIn(given.use) === undefined;
  const before = isNew ? [] : said(history);
  const layers = [before, ...(tools.length === 0 ? [] : [addTools(...tools)])];
  return agent.call$(input, { ...given, use: [...(given.use ?? []), ...layers] }).pipe(
    map((reply): Turn => {
      const [move, ...others] = transfers.movesIn(reply, tools);
      // The handoff member keeps the conversation, even if an agent within it answered.
      if (move === undefined) return { reply: { ...reply, name: active } };
      const toolCalls = reply.toolCalls.filter(({ name }) => !transfers.isTransfer(name));
      const messages = lastMessages(given.parent);
      return afterHandoff(turn, { move, others, toolCalls, messages }, settings);
    }),
  );
};

interface Handing {
  readonly move: Move;
  /** Handoffs that the agent asked for in the same message. */
  readonly others: readonly Move[];
  readonly toolCalls: readonly ToolRun[];
  readonly messages: readonly Message[];
}

const afterHandoff = (
  { active: from, history, input, moves }: OpenTurn,
  { move, others, toolCalls, messages }: Handing,
  { filter }: Settings,
): OpenTurn => {
  const { to, reason } = move;
  const asked = withAdded([...history, ...toMessages(input)], messages);
  const carried = filter([...asked, ...spokenBy(from, { move, others, toolCalls, messages })], {
    from,
    to,
    toolCalls,
    ...(reason === undefined ? {} : { reason }),
  });
  if (carried.length === 0) {
    throw misuse(
      "handoff(): the 'filter' returned no messages. Keep at least the last user message.",
    );
  }
  // Guards of the next agent check its question, not the conversation before.
  const cut = questionStart(carried);
  return {
    active: to,
    history: carried.slice(0, cut),
    input: carried.slice(cut),
    moves: moves + 1,
  };
};

/** Messages that users add while an agent works belong to the question. */
const withAdded = (
  asked: readonly InputMessage[],
  messages: readonly Message[],
): readonly InputMessage[] => {
  const end = asked.findLastIndex(({ role }) => role === 'user') + 1;
  const added = messages.filter(({ role }) => role === 'user');
  return asked.toSpliced(end === 0 ? asked.length : end, 0, ...added);
};

/** The words of the agent that hands over, a summary of its tool calls, and the handover. */
const spokenBy = (
  name: string,
  { move, others, toolCalls, messages }: Handing,
): readonly InputMessage[] => {
  const words = messages.flatMap(({ role, content }) => {
    const shown = role === 'assistant' ? content.filter(isContentBlock) : [];
    return shown.length === 0 ? [] : [shown];
  });
  const handover = [
    ['I am handing over to', move] as const,
    ...others.map((other) => ['I also asked to hand over to', other] as const),
  ].map(([what, { to, reason = '' }]) => `${what} ${to}. ${reason}`.trim());
  const all = [
    ...words,
    ...(toolCalls.length === 0 ? [] : [summaryOf(toolCalls, messages)]),
    [textBlock(handover.join('\n'))],
  ];
  return all.map((content) => ({ role: 'assistant', name, content }));
};

const rules: Readonly<Record<keyof HandoffOptions, Rule>> = {
  ...stepAgentRules,
  agents: listOf('agents with their descriptions'),
  start: isText,
  filter: isFunction,
  maxHandoffs: wholeNumber(0),
  allow: isObject,
};

export interface Member {
  /** Its name must be unique: the conversation identifies the active agent by it. */
  readonly agent: Agent;
  /** When to hand over to it, for the other agents. */
  readonly description: string;
}

interface Move {
  readonly to: string;
  readonly reason?: string;
}

interface Transfers {
  readonly agents: ReadonlyMap<string, Agent>;
  toolsOf(name: string): readonly Tool[];
  isTransfer(toolName: string): boolean;
  /** The handoffs that a reply asks for with these tools. */
  movesIn(reply: Reply, given: readonly Tool[]): readonly Move[];
}

/** Creates the transfer tools of agents. `allow` limits who can hand over to whom. */
const createTransfers = (
  members: readonly Member[],
  allow?: Readonly<Record<string, readonly string[]>>,
): Transfers => {
  checkMembers('handoff()', members);
  const all = members.map(({ agent }) => agent);
  checkAgents('handoff()', all, 1);
  checkNames('handoff()', all);
  const agents = new Map(all.map((agent) => [agent.name, agent]));
  const names = [...agents.keys()];
  const allowed = new Map(Object.entries(allow ?? {}));
  const unknownName = [...allowed].flat(2).find((name) => !agents.has(name));
  if (unknownName !== undefined) throw unknownAgent('allow', unknownName, names);
  const toolNames = fitNames(names.map((name) => `transfer_to_${fitName(name)}`));
  const tools = members.map(({ agent, description }, index) => ({
    to: agent.name,
    tool: transferTool(toolNames[index] ?? '', agent.name, description),
  }));
  const canTransfer = (from: string, to: string): boolean =>
    from !== to && (allow === undefined || allowed.get(from)?.includes(to) === true);
  return {
    agents,
    toolsOf: (from) => tools.filter(({ to }) => canTransfer(from, to)).map((it) => it.tool),
    isTransfer: (name) => toolNames.includes(name),
    movesIn: ({ reason, toolCalls }, given) =>
      (reason === 'toolFinal' ? toolCalls : []).flatMap(({ name, input, isError, agent }) => {
        const transfer = tools.find((it) => it.tool.name === name && given.includes(it.tool));
        // Those of a team within are its own.
        if (isError || agent !== undefined || transfer === undefined) return [];
        const why = input['reason'];
        return [{ to: transfer.to, ...(typeof why === 'string' && { reason: why }) }];
      }),
  };
};

const unknownAgent = (option: string, name: string, names: readonly string[]): MillraceError =>
  misuse(`handoff(): '${option}' names '${name}'. The agents are: ${names.join(', ')}.`);

/** Without output: the last words of the agent are its answer. */
const transferTool = (name: string, to: string, description: string): Tool =>
  tool({
    name,
    idempotent: true,
    description: `Hands the conversation over to ${oneLine(to)}, who answers from now on. ${oneLine(description)}`,
    input: jsonSchema({
      type: 'object',
      properties: {
        reason: { type: 'string', description: 'Why, and what the other agent needs to know.' },
      },
      additionalProperties: false,
    }),
    run: () => toolOutput({ content: [], finalAnswer: true }),
  });

export interface Handover {
  readonly from: string;
  readonly to: string;
  /** The reason, in the words of the agent that hands over. */
  readonly reason?: string;
  readonly toolCalls: readonly ToolRun[];
}

/**
 * Selects what the next agent sees of a conversation: messages of users and agents, including the last user message and
 * everything after it. The last two are a summary of the tool calls of the agent that hands over, if it made any, and the
 * handover. It may drop, change and add messages; the conversation continues from the result.
 */
export type HandoffFilter = (
  messages: readonly InputMessage[],
  handover: Handover,
) => readonly InputMessage[];

/** Keeps all messages. */
export const carryAll: HandoffFilter = (messages) => messages;

/** Keeps all messages but the summary of tool calls: the next agent learns of them only what the agent says. */
export const carryWords: HandoffFilter = (messages, { toolCalls }) =>
  toolCalls.length === 0 ? messages : [...messages.slice(0, -2), ...messages.slice(-1)];

/** Keeps the last user message and everything after it. */
export const carryLast: HandoffFilter = (messages) => messages.slice(questionStart(messages));
