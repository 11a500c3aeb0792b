import type { CallInfo } from '../../values/reply.js';
import { messageOf, misuse } from '../../values/errors.js';
import type { AgentEvent, EventOf, EventType } from '../../events.js';
import { watch, type Interceptor } from '../../seams/interceptor.js';
import { defined, isRecord } from '../../values/json.js';
import { isError } from '../../values/plain-json.js';
import { textOf, type ToolCallBlock, toolCallsOf } from '../../values/message.js';
import { checkOptions, isFlag, isFunction, isText } from '../../values/options.js';
import { isUsage } from '../../values/shape.js';

/** Receives log entries: a pino logger, `console`, or anything that takes fields and a message. */
export interface Logger {
  error(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  debug(fields: LogFields, message: string): void;
}

export interface LogFields {
  readonly event: AgentEvent['type'];
  readonly callId: string;
  readonly rootId: string;
  readonly sessionId?: string;
  readonly userId?: string;
  /** The path of agent names from the root, joined by `/`. */
  readonly agent: string;
  readonly iteration: number;
  readonly seq: number;
  readonly [field: string]: unknown;
}

export interface LogEventsOptions {
  readonly name?: string | undefined;
  /** Also log the chunks of models and tools, at level `debug`. Default: false. */
  readonly chunks?: boolean | undefined;
  /** Formats the message. Default: the type of the event; for `console`, which gets no fields, a readable line. */
  readonly format?: ((fields: LogFields, event: AgentEvent) => string) | undefined;
}

/**
 * Logs every event of an agent's calls: `info` for the start and end of a call, `error` for its failure, `warn` for
 * problems, `debug` for the rest. Logs names, numbers, codes, and the stacks of errors in tools and handlers with their
 * messages and causes; no other texts and no arguments. `console` (default) gets a line: time (UTC), agents, call and
 * iteration, event, details. Other loggers get fields and a message.
 */
export const logEvents = (
  logger: Logger = console,
  options: LogEventsOptions = {},
): Interceptor => {
  if (!isLogger(logger))
    throw misuse('logEvents() takes a logger with error, warn, info and debug.');
  checkOptions('logEvents()', options, { name: isText, chunks: isFlag, format: isFunction });
  const isConsole = logger === console;
  const { name = 'logEvents', chunks = false, format = isConsole ? lineOf : typeOf } = options;
  return watch(
    (event, call) => {
      if (event.type.endsWith('Chunk') && !chunks) return;
      const fields = { ...fieldsOf(event, call), ...detailsOf(event) };
      const message = format(fields, event);
      if (isConsole) console[levelOf(event)](withStack(message, fields));
      else logger[levelOf(event)](fields, message);
    },
    { name },
  );
};

const typeOf = ({ event }: LogFields): string => event;

const lineOf = (
  {
    event,
    callId,
    rootId: _rootId,
    agent,
    iteration,
    seq: _seq,
    stack: _stack,
    ...details
  }: LogFields,
  { at }: AgentEvent,
): string => {
  const time = new Date(at).toISOString().slice(11, -1);
  const shortId = callId.replace(/[\da-f]{16}/g, (id) => id.slice(0, 6));
  const words = [agent, `${callId}/${iteration}`, event].map(wordOf);
  const line = [time, ...words, ...Object.entries(details).flatMap(detailOf)].join(' ');
  return line.replaceAll(callId, shortId);
};

const withStack = (line: string, { stack }: LogFields): string =>
  typeof stack === 'string' ? `${line}\n${stack.replaceAll(/[^\P{C}\n]/gu, '?')}` : line;

/** Maximum number of causes in a log entry. */
const maxCauses = 5;

/** The stack of an error with those of its causes, without its other fields, which may hold secrets. */
const stackOf = (error: unknown, left = maxCauses): string => {
  if (!isError(error)) return messageOf(error);
  const { name, message, stack = `${name}: ${message}`, cause } = error;
  return cause === undefined || left === 0
    ? stack
    : `${stack}\nCaused by: ${stackOf(cause, left - 1)}`;
};

const detailOf = ([name, value]: readonly [string, unknown]): readonly string[] => {
  if (isUsage(value)) {
    const { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens } = value;
    return [`tokens=${inputTokens + cacheReadTokens + cacheWriteTokens}→${outputTokens}`];
  }
  if (typeof value === 'number' && /ms$/i.test(name))
    return [`${name.slice(0, -2) || 'took'}=${value < 1_000 ? `${value}ms` : `${value / 1_000}s`}`];
  const text =
    typeof value === 'string' ? value : JSON.stringify(value ?? '').replace(/[[\]"]/g, '');
  return text === '' ? [] : [`${name}=${wordOf(text)}`];
};

/** In quotes if it is not one word, without characters that control a terminal. */
const wordOf = (text: string): string =>
  /^[\w.,:/#~@+-]+$/.test(text) ? text : JSON.stringify(text).replaceAll(/\p{C}/gu, '?');

const fieldsOf = (
  { type, callId, rootId, sessionId, agent, iteration, seq }: AgentEvent,
  { metadata: { userId } }: CallInfo,
): LogFields => ({
  event: type,
  callId,
  rootId,
  ...defined({ sessionId, userId }),
  agent: agent.join('/'),
  iteration,
  seq,
});

const levelOf = (event: AgentEvent): keyof Logger => {
  if (event.type === 'error') return 'error';
  if (event.type === 'postActing' && event.result.isError) return 'warn';
  return problems.test(event.type) ? 'warn' : milestones.test(event.type) ? 'info' : 'debug';
};

const problems =
  /^(?:warning|handlerError|vetoed|messageDiscarded|repaired|model(?:Retry|Waiting|Fallback))$/;
const milestones = /^(?:preCall|postCall|suspended|approval(?:Requested|Decided))$/;

type Details<Type extends EventType> = (event: EventOf<Type>) => object;

const detailsOf = (event: AgentEvent): object => {
  const given: unknown = Reflect.apply(byType[event.type] ?? (() => ({})), undefined, [event]);
  return isRecord(given) ? given : {};
};

const request = (event: EventOf<'preReasoning' | 'preSummary' | 'prePlanning'>) => ({
  ...('phase' in event && { phase: event.phase }),
  messages: event.messages.length,
  tools: event.options.tools?.length ?? 0,
});

const answer = (event: EventOf<'postReasoning' | 'postSummary' | 'postPlanning'>) => ({
  ...('phase' in event && { phase: event.phase }),
  messageId: event.message.id,
  finish: event.finish,
  usage: event.usage,
  tools: toolCallsOf(event.message).map((toolCall) => toolCall.name),
  characters: textOf(event.message).length,
});

const chunk = (event: EventOf<'reasoningChunk' | 'summaryChunk' | 'planningChunk'>) => ({
  messageId: event.messageId,
  kind: event.kind,
  characters: event.delta.length,
});

const failure = ({ error }: Pick<EventOf<'error'>, 'error'>): object => {
  const { code, retryable, status, requestId } = error;
  return { code, retryable, ...defined({ status, requestId }) };
};

const call = ({ toolCall }: { readonly toolCall?: ToolCallBlock }): object =>
  toolCall === undefined ? {} : { tool: toolCall.name, toolCallId: toolCall.id };

const byType: { readonly [Type in EventType]?: Details<Type> } = {
  preCall: ({ input }) => ({ messages: input.length }),
  stepReplayed: ({ step }) => ({ step }),
  uncertain: (event) => ({ ...call(event), then: event.then }),
  preReasoning: request,
  preSummary: request,
  prePlanning: request,
  reasoningChunk: chunk,
  summaryChunk: chunk,
  planningChunk: chunk,
  postReasoning: answer,
  postSummary: answer,
  postPlanning: answer,
  recalled: ({ memories }) => ({ memories: memories.length }),
  messagesAppended: ({ messages }) => ({ messages: messages.length }),
  messagesRemoved: ({ ids }) => ({ messages: ids.length }),
  stateChanged: ({ name, patches }) => ({ name, patches: patches.length }),
  preActing: call,
  actingChunk: call,
  suspended: call,
  approvalRequested: call,
  approvalDecided: (event) => ({ ...call(event), approved: event.approved }),
  repaired: (event) => ({ ...call(event), characters: event.before.length }),
  postActing: ({ toolCall, result, ms, error }) => ({
    ...call({ toolCall }),
    isError: result.isError,
    ms,
    characters: textOf(result).length,
    ...(error !== undefined && { stack: stackOf(error) }),
  }),
  postCall: ({ reply: { reason, finish, iterations, toolCalls, usage, elapsedMs } }) => {
    return { reason, finish, iterations, toolCalls: toolCalls.length, usage, elapsedMs };
  },
  error: failure,
  handlerError: (event) => ({
    of: event.of,
    handler: event.name,
    ...failure(event),
    stack: stackOf(event.error),
  }),
  modelWaiting: ({ model, waitedMs, on }) => ({ model, waitedMs, ...defined({ on }) }),
  modelRetry: ({ model, attempt, attempts, waitMs, ...event }) => {
    return { model, attempt, attempts, waitMs, ...failure(event) };
  },
  modelFallback: (event) => ({ from: event.from, to: event.to, ...failure(event) }),
  messageDiscarded: ({ messageId }) => ({ messageId }),
  vetoed: ({ of, name, toolCallId }) => ({ of, handler: name, ...defined({ toolCallId }) }),
  queued: ({ why, ahead }) => ({ why, ahead }),
  admitted: ({ why, waitedMs }) => ({ why, waitedMs }),
  retrieved: ({ passages }) => ({ passages: passages.length }),
  steered: ({ message }) => ({ messageId: message.id }),
  warning: ({ message }) => ({ warning: message }),
};

const isLogger = (value: unknown): boolean =>
  isRecord(value) &&
  ['error', 'warn', 'info', 'debug'].every((level) => typeof value[level] === 'function');
