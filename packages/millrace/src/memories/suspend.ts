import { deferWork } from '../flow/eventual.js';
import { catchError, concatMap, from, map, mergeMap, type Observable, of, toArray } from 'rxjs';
import { contained } from '../flow/contained.js';
import { firstPhase } from '../call/answer.js';
import { notAwaited } from '../call/layers/conversation.js';
import { assistantMessage } from '../phases/limit.js';
import { runTool } from '../phases/tool-call.js';
import { end, type OpenRun, type Run, spend } from '../run.js';
import type { Call, LoopCall } from '../seams/call.js';
import type { Context, Layer } from '../seams/layer.js';
import type { Hooks } from '../seams/hooks.js';
import { trusted } from '../seams/through.js';
import { phase } from '../seams/phase.js';
import type { Toolkit } from '../tools/toolkit.js';
import type { Tool } from '../tools/types.js';
import { cell } from '../step.js';
import type { CallInfo } from '../values/reply.js';
import { addUsage, noUsage } from '../values/usage.js';
import { recorded } from './recorded.js';
import { assertAllReached, assertCallsAgents } from './changed-agents.js';
import { MillraceError } from '../values/errors.js';
import { defined, parsedJson } from '../values/json.js';
import { checkOptions, isText, type Rule } from '../values/options.js';
import type { InputMessage } from '../seams/input.js';
import {
  freezeMessage,
  type Message,
  type ResultSource,
  type Suspension,
  type ToolMessage,
  type ToolResultBlock,
  type ToolCallBlock,
  textOf,
  toolCallsOf,
} from '../values/message.js';
import {
  rejectedResult,
  suspendedOutput,
  thrownOutput,
  type ToolOutput,
  toOutput,
  toToolRun,
} from '../values/tool-output.js';
import { suspensionsOf } from '../phases/settle.js';

const source: Rule = [
  (value) => value === 'client' || value === 'program',
  "'client' or 'program'",
];

/**
 * The output of a tool whose result arrives later: the call ends with reason `suspended`, and `toolResults` continues
 * the session, also in another process. The request is plain JSON, hidden from the model.
 *
 * `from` says who may bring the result. `client` (default): a client of a server, which runs the tool or asks its user, or the
 * program. `program`: the program only; servers hide the request, and refuse a result. Use it if the client that asks must
 * not answer: for a decision of another person, or a result that only your program knows. `by` names the layer that continues the
 * tool call: it recognizes its own by this name, because a request may be what a model or a client wrote.
 */
export const suspend = (
  request: unknown = null,
  options: { readonly from?: ResultSource | undefined; readonly by?: string | undefined } = {},
): ToolOutput => {
  checkOptions('suspend()', options, { from: source, by: isText });
  return suspendedOutput(parsedJson(JSON.stringify(request)), options.from ?? 'client', options.by);
};

/**
 * The input that continues a suspended session: a return value for each suspended tool call, by its id. If a client of yours
 * brings them, pass `{ from: 'client' }`: its results are refused for tool calls that wait for the program.
 */
export const toolResults = (
  results: Readonly<Record<string, unknown>>,
  options: { readonly from?: ResultSource | undefined } = {},
): InputMessage => {
  checkOptions('toolResults()', options, { from: source });
  if (Object.keys(results).length === 0)
    throw refused('toolResults() needs a result: toolResults({ [id]: result }).');
  return {
    role: 'tool',
    content: Object.entries(results).map(([toolCallId, value]): ToolResultBlock => {
      if (value instanceof Promise) {
        throw refused(`The result for '${toolCallId}' is a Promise: await it first.`);
      }
      const { content, isError, details } = toOutput(value);
      const by = options.from === 'client' ? { from: options.from } : {};
      return { type: 'tool_result', toolCallId, content, isError, ...defined({ details }), ...by };
    }),
  };
};

export const suspensionsIn = (messages: readonly Message[]): readonly Suspension[] =>
  suspendedIn(withResults(messages)).flatMap(suspensionsOf);

/** A tool call with its result, or the promise of one. */
type Suspended = Parameters<typeof suspensionsOf>[0];

export const suspendedIn = (messages: readonly Message[]): readonly Suspended[] => {
  const uses = usesIn(messages);
  return messages.flatMap(results).flatMap((result) => {
    const toolCall = uses.get(result.toolCallId);
    return toolCall === undefined || result.suspended === undefined ? [] : [{ toolCall, result }];
  });
};

export const usesIn = (messages: readonly Message[]): ReadonlyMap<string, ToolCallBlock> =>
  new Map(messages.flatMap(toolCalls).map((use) => [use.id, use]));

/** Moves each late result to its suspended tool call: the nearest earlier one with its id. */
export const withResults = (messages: readonly Message[]): readonly Message[] => {
  const waiting = new Map<string, ToolResultBlock>();
  const settled = new Map<ToolResultBlock, ToolResultBlock>();
  const moved = new Set<Message>();
  messages.forEach((message, index) => {
    const isAwaited = ({ toolCallId }: ToolResultBlock): boolean => waiting.has(toolCallId);
    if (isLate(message, index, messages) && message.content.every(isAwaited)) {
      moved.add(message);
      for (const result of message.content) {
        const place = waiting.get(result.toolCallId);
        if (place !== undefined) settled.set(place, result);
        // A tool that continued may be suspended again.
        if (result.suspended === undefined) waiting.delete(result.toolCallId);
      }
    } else {
      const open = results(message).filter(({ suspended }) => suspended !== undefined);
      open.forEach((result) => waiting.set(result.toolCallId, result));
    }
  });
  if (moved.size === 0) return messages;
  return messages
    .filter((message) => !moved.has(message))
    .map((message) =>
      message.role === 'tool'
        ? { ...message, content: message.content.map((block) => settled.get(block) ?? block) }
        : message,
    );
};

const isLate = (
  message: Message,
  index: number,
  messages: readonly Message[],
): message is ToolMessage => {
  const before = messages[index - 1];
  const asked = before === undefined ? [] : toolCalls(before).map(({ id }) => id);
  return message.role === 'tool' && !message.content.some((it) => asked.includes(it.toolCallId));
};

/** The tool calls of an earlier call that this one continues, and the results for the calls below them, by suspension. */
export const continuing = cell('family', (): Continuing => ({ tools: [], results: new Map() }));

interface Continuing {
  readonly tools: readonly Suspended[];
  readonly results: ReadonlyMap<string, ToolResultBlock>;
}

/** The calls that have a memory of their own. */
export const remembering = cell('family', () => new Set<string>());

/**
 * Lets a suspended sub-agent suspend the tools that called it, up to the root call, if that has a journal and a session.
 * The next call of the session runs these tools again: their calls replay their steps, and continue with the results.
 */
export const suspendBelow: Layer = trusted({ name: 'suspendBelow', inherit: true });

/** The tool calls that wait for calls below them. */
export const waitingTools = (history: readonly Message[]): readonly Suspended[] =>
  suspendedIn(history).filter(({ result }) => result.suspended?.below !== undefined);

/** Continues the tools whose calls waited, with the results, before the first turn; none if other results are missing. */
export const continueBelow = (
  { layers, local }: Pick<Context, 'layers' | 'local'>,
  { history, status }: Pick<Call, 'history' | 'status'>,
  given: ToolMessage | undefined,
): void => {
  if (given === undefined || status !== 'prepared') return;
  const results = new Map(given.content.map((result) => [result.toolCallId, result]));
  const isGiven = ({ toolCall }: Suspension): boolean => results.has(toolCall.id);
  const tools = waitingTools(history).filter((it) => suspensionsOf(it).some(isGiven));
  if (tools.length === 0 && suspensionsIn(history).every(isGiven)) return;
  // Without them, the sub-agents would start again, with all their effects.
  if (tools.length > 0 && (!local(recorded).by || !layers.includes(suspendBelow))) {
    throw refused('A suspended sub-agent needs journal() and suspendBelow to continue.');
  }
  Object.assign(local(continuing), { tools, results });
  local(firstPhase).create = (context, call) => phase((run) => continued$(context, call, run));
};

const continued$ = (context: Context, call: LoopCall, run: OpenRun) => {
  const { info, interruption, local } = context;
  const toolkit = call.toolkit.current;
  // All are checked before the first one runs. A recorded one does not run.
  local(continuing).tools.forEach(({ toolCall: { name } }, index) => {
    const isWritten = local(recorded).by?.isWritten(`${run.iteration}/${index}`) === true;
    if (!isWritten) assertCallsAgents(name, toolkit.find(name));
  });
  return from(local(continuing).tools).pipe(
    mergeMap(({ toolCall }, index) => {
      const tool = toolkit.find(toolCall.name);
      const plan = { index, toolCall, tool, extras: {}, repeats: 0 };
      const decision = { toolCall, failed: false, usage: noUsage };
      return deferWork(() => runTool(context, call, run, plan, decision));
    }, call.limits.parallel),
    toArray(),
    map((ran) => {
      if (interruption.current === undefined) assertAllReached(context);
      ran.sort((a, b) => a.index - b.index);
      const usage = ran.map((it) => it.usage).reduce(addUsage, noUsage);
      const late = ran.map(({ result }) => result);
      const toolRuns = [...run.toolRuns, ...ran.map(toToolRun)];
      const spent = late.length === 0 ? run : addLate(spend(run, usage, 'acting'), info, late);
      const settled = { ...spent, toolRuns };
      const suspensions = suspensionsIn(settled.messages);
      return suspensions.length === 0
        ? settled
        : { ...end(settled, 'suspended', assistantMessage(info, 'late', [])), suspensions };
    }),
  );
};

/** The id of the late results of the tools that a call has continued. */
export const lateId = ({ callId }: Pick<CallInfo, 'callId'>): string => `${callId}/late`;

/** Adds the late results of tool calls of an earlier call. */
export const addLate = (
  run: OpenRun,
  info: Pick<CallInfo, 'callId'>,
  content: readonly ToolResultBlock[],
): OpenRun => {
  const late = freezeMessage({ id: lateId(info), role: 'tool', content });
  const messages = withResults([...run.messages, late]).map(freezeMessage);
  return { ...run, messages: Object.freeze(messages), late: [...run.late, late] };
};

/** The tool calls that a sub-agent waits for, by the ids that `toolResults` of its root call takes. */
export const waitingIn = ({ messages }: Run, call: CallInfo): readonly Suspension[] =>
  suspendedIn(withResults(messages)).flatMap(({ toolCall, result }) =>
    suspensionsOf({ toolCall: { ...toolCall, id: suspensionId(call, toolCall.id) }, result }),
  );

/** The id of a suspended tool call in its root call. */
export const suspensionId = ({ callId, rootId }: CallInfo, toolCallId: string): string =>
  `${callId.startsWith(`${rootId}/`) ? callId.slice(rootId.length + 1) : callId}/${toolCallId}`;

/** Runs results for suspended tools through the interceptors of `postActing`, like immediate ones. Those of clients are checked first. */
export const brought$ = (
  hooks: Hooks,
  toolkit: Toolkit,
  history: readonly Message[],
  results: ToolMessage,
): Observable<ToolMessage> => {
  const uses = usesIn(history);
  return from(results.content).pipe(
    concatMap((result) => {
      const toolCall = uses.get(result.toolCallId);
      if (toolCall === undefined) return [result];
      return checked$(toolkit.find(toolCall.name), result).pipe(
        concatMap((checked) => settledBy$(hooks, toolCall, checked)),
      );
    }),
    toArray(),
    map((content) => ({ ...results, content })),
  );
};

/** A client can send anything: its result must fit the schema of the tool, as one of the tool itself. */
export const checked$ = (
  tool: Pick<Tool, 'result$'> | undefined,
  result: ToolResultBlock,
): Observable<ToolResultBlock> => {
  if (result.from !== 'client' || result.isError || tool?.result$ === undefined) return of(result);
  return tool.result$(result.content).pipe(
    contained(),
    catchError((cause: unknown) => of(thrownOutput(cause))),
    map(({ content, isError }) => ({ ...result, content, isError })),
  );
};

const settledBy$ = (
  hooks: Hooks,
  toolCall: ToolCallBlock,
  result: ToolResultBlock,
): Observable<ToolResultBlock> => {
  const after = { type: 'postActing', toolCall, result, ms: 0 } as const;
  return deferWork(() =>
    hooks.emit(0, after, (event) => {
      const own = defined({ cancelled: result.cancelled });
      if (event !== undefined) return { ...event.result, toolCallId: toolCall.id, ...own };
      const rejected = { ...rejectedResult(toolCall.id), ...own };
      hooks.report(0, { ...after, result: rejected });
      return rejected;
    }),
  );
};

/** Throws if results are unexpected, repeated or missing, or if a client brings one that it may not. */
export const assertResumes = (
  history: readonly Message[],
  brought: ToolMessage | undefined,
  { isAlone, mayLack }: { readonly isAlone: boolean; readonly mayLack: boolean },
): void => {
  const suspensions = suspensionsIn(history);
  const waiting = suspensions.map(({ toolCall }) => toolCall.id);
  const results = brought?.content ?? [];
  const given = results.map(({ toolCallId }) => toolCallId);
  const unknown = given.find((id) => !waiting.includes(id));
  if (unknown !== undefined)
    throw (
      cancelledBefore(history, unknown) ??
      answeredBefore(history, unknown) ??
      notAwaited(unknown, waiting)
    );
  const ofClient = results.filter(({ from: by }) => by === 'client').map((it) => it.toolCallId);
  const barred = suspensions.find(
    ({ from: by, toolCall: { id } }) => by !== 'client' && ofClient.includes(id),
  );
  if (barred !== undefined) throw forProgram(barred);
  const twice = given.find((id, index) => given.indexOf(id) !== index);
  if (twice !== undefined) throw refused(`There are two results for the tool call '${twice}'.`);
  const missing = suspensions.filter(({ toolCall }) => !given.includes(toolCall.id));
  if (missing.length === 0 || mayLack) return;
  // Those for clients and those for the program may come apart.
  const rest = missing.map((it) => it.from);
  const isPart = given.length > 0 && isAlone;
  const isOfRest = (it: Suspension): boolean => rest.includes(it.from) && !missing.includes(it);
  if (!isPart || suspensions.some(isOfRest)) throw lacking(missing);
};

const cancelledBefore = (history: readonly Message[], id: string): MillraceError | undefined => {
  const result = history.flatMap(results).findLast(({ cancelled = [] }) => cancelled.includes(id));
  if (result === undefined) return undefined;
  return refused(
    `The tool call '${id}' was cancelled before its result came, so it takes none. The model has read: ${textOf(result)}`,
    'This is no longer waiting for an answer.',
  );
};

const answeredBefore = (history: readonly Message[], id: string): MillraceError | undefined =>
  history.flatMap(results).some(({ toolCallId }) => toolCallId === id)
    ? refused(
        `The tool call '${id}' already has a result. That result counts, and the conversation has continued.`,
        'This has already been answered. Load the conversation again.',
      )
    : undefined;

const forProgram = ({ toolCall: { id, name } }: Suspension): MillraceError =>
  refused(
    `The tool call '${id}' of ${name} waits for the program: a client may not bring its result. If it may, suspend it with suspend(request, { from: 'client' }).`,
    'This tool call does not wait for you.',
  );

const lacking = (missing: readonly Suspension[]): MillraceError => {
  const ids = missing.map(({ toolCall }) => toolCall.id);
  return refused(
    `The session is suspended: it waits for the results of ${ids.join(', ')}. Supply them: session.call(toolResults({ '${ids[0] ?? ''}': result })). To cancel them instead, send the message with onSuspended: 'cancel', or call session.cancelSuspended().`,
    missing.some((it) => it.from === 'client')
      ? undefined
      : 'The conversation waits for a decision. Try again later.',
  );
};

const refused = (message: string, userMessage?: string): MillraceError =>
  new MillraceError('invalidResume', message, {
    status: 409,
    ...defined({ userMessage }),
  });

const toolCalls = (message: Message): readonly ToolCallBlock[] =>
  message.role === 'assistant' ? toolCallsOf(message) : [];

const results = (message: Message): readonly ToolResultBlock[] =>
  message.role === 'tool' ? message.content : [];
