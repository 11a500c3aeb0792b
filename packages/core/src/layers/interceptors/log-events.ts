import type { CallInfo } from '../../values/reply.js';
import { misuse } from '../../values/errors.js';
import type { AfterModel, AgentEvent, BeforeModel } from '../../events.js';
import { watch, type Interceptor } from '../../seams/interceptor.js';
import { isRecord } from '../../values/json.js';
import { textOf, type ToolCallBlock, toolCallsOf } from '../../values/message.js';
import { checkOptions, defined, isFlag, isText, type Rule } from '../../values/options.js';

/** Receives log lines: a pino logger, `console`, or anything that takes fields and a message. */
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
  readonly name?: string;
  /** Also log the chunks of models and tools, at level `debug`. Default: false. */
  readonly chunks?: boolean;
}

/**
 * Logs a line for every event of an agent's calls: `info` for the start and end of a call, `error` for its failure,
 * `warn` for problems, `debug` for the rest. Logs names, numbers and codes, never texts or arguments.
 */
export const logEvents = (logger: Logger, options: LogEventsOptions = {}): Interceptor => {
  if (!isLogger(logger))
    throw misuse('logEvents() takes a logger with error, warn, info and debug.');
  checkOptions('logEvents()', options, rules);
  const { name = 'logEvents', chunks = false } = options;
  return watch(
    (event, call) => {
      if (isChunk(event) && !chunks) return;
      logger[levelOf(event)]({ ...fieldsOf(event, call), ...detailsOf(event) }, event.type);
    },
    { name },
  );
};

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

const isChunk = ({ type }: AgentEvent): boolean => type.endsWith('Chunk');

const levelOf = ({ type }: AgentEvent): keyof Logger => {
  switch (type) {
    case 'error':
      return 'error';
    case 'warning':
    case 'handlerError':
    case 'vetoed':
    case 'modelRetry':
    case 'modelWaiting':
    case 'modelFallback':
    case 'messageDiscarded':
    case 'repaired':
      return 'warn';
    case 'preCall':
    case 'postCall':
    case 'suspended':
    case 'approvalRequested':
    case 'approvalDecided':
      return 'info';
    default:
      return 'debug';
  }
};

const requestDetails = ({ messages, options }: BeforeModel) => ({
  messages: messages.length,
  tools: options.tools?.length ?? 0,
});

const answerDetails = ({ message, finish, usage }: AfterModel) => ({
  messageId: message.id,
  finish,
  usage,
  tools: toolCallsOf(message).map((toolCall) => toolCall.name),
  characters: textOf(message).length,
});

const toolDetails = ({ name, id }: ToolCallBlock) => ({ tool: name, toolCallId: id });

const detailsOf = (event: AgentEvent): Readonly<Record<string, unknown>> => {
  switch (event.type) {
    case 'preCall':
      return { messages: event.input.length };
    case 'stepReplayed':
      return { step: event.step };
    case 'uncertain':
      return { ...toolDetails(event.toolCall), then: event.then };
    case 'preReasoning':
    case 'preSummary':
      return requestDetails(event);
    case 'prePlanning':
      return { phase: event.phase, ...requestDetails(event) };
    case 'reasoningChunk':
    case 'summaryChunk':
    case 'planningChunk':
      return { messageId: event.messageId, kind: event.kind, characters: event.delta.length };
    case 'postReasoning':
    case 'postSummary':
      return answerDetails(event);
    case 'postPlanning':
      return { phase: event.phase, ...answerDetails(event) };
    case 'recalled':
      return { memories: event.memories.length };
    case 'messagesAppended':
      return { messages: event.messages.length };
    case 'messagesRemoved':
      return { messages: event.ids.length };
    case 'stateChanged':
      return { name: event.name, patches: event.patches.length };
    case 'preActing':
    case 'actingChunk':
    case 'suspended':
    case 'approvalRequested':
      return toolDetails(event.toolCall);
    case 'repaired':
      return {
        ...(event.toolCall && toolDetails(event.toolCall)),
        characters: event.before.length,
      };
    case 'approvalDecided':
      return { ...toolDetails(event.toolCall), approved: event.approved };
    case 'postActing': {
      const { toolCall, result, ms } = event;
      const outcome = { isError: result.isError, ms, characters: textOf(result).length };
      return { ...toolDetails(toolCall), ...outcome };
    }
    case 'postCall': {
      const { reason, finish, iterations, toolCalls, usage, elapsedMs } = event.reply;
      return { reason, finish, iterations, toolCalls: toolCalls.length, usage, elapsedMs };
    }
    case 'error':
      return errorFields(event);
    case 'handlerError':
      return { of: event.of, handler: event.name, ...errorFields(event) };
    case 'modelWaiting':
      return { model: event.model, waitedMs: event.waitedMs };
    case 'modelRetry': {
      const { model, attempt, attempts, waitMs } = event;
      return { model, attempt, attempts, waitMs, ...errorFields(event) };
    }
    case 'modelFallback':
      return { from: event.from, to: event.to, ...errorFields(event) };
    case 'messageDiscarded':
      return { messageId: event.messageId };
    case 'vetoed': {
      const { of, name: handler, toolCallId } = event;
      return { of, handler, ...defined({ toolCallId }) };
    }
    case 'queued':
      return { why: event.why, ahead: event.ahead };
    case 'retrieved':
      return { passages: event.passages.length };
    case 'steered':
      return { messageId: event.message.id };
    case 'warning':
      return { warning: event.message };
    default:
      return {};
  }
};

const errorFields = ({
  error: { code, retryable, status, requestId },
}: Pick<Extract<AgentEvent, { type: 'error' }>, 'error'>) => ({
  code,
  retryable,
  ...defined({ status, requestId }),
});

const levels = ['error', 'warn', 'info', 'debug'] as const;

const isLogger = (value: unknown): boolean =>
  isRecord(value) && levels.every((level) => typeof value[level] === 'function');

const rules: Readonly<Record<keyof LogEventsOptions, Rule>> = { name: isText, chunks: isFlag };
