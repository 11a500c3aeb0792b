import { concat, of } from 'rxjs';
import { andThen, type Eventual } from '../flow/eventual.js';
import { withoutTools } from '../models/request-options.js';
import type { EndedRun, OpenRun } from '../run.js';
import { append, assertPaired, end, messagesOf, spend } from '../run.js';
import type { LoopCall } from '../seams/call.js';
import type { Context, Phase } from '../seams/layer.js';
import { phase } from '../seams/phase.js';
import { MillraceError } from '../values/errors.js';
import { noMemory } from '../values/memory.js';
import {
  type AssistantBlock,
  type AssistantMessage,
  textBlock,
  textOf,
  type ToolMessage,
  toolCallsOf,
  type UserMessage,
} from '../values/message.js';
import type { CallInfo, EndReason } from '../values/reply.js';
import { askModel, type ModelAnswer, type RequestEvents } from './ask.js';
import { discardUnlessKept } from './message-builder.js';
import { remember$ } from './remember.js';

/** Ends the run if the call was interrupted. */
export const checkInterrupt = (context: Pick<Context, 'info' | 'interruption'>): Phase =>
  phase((run) => (context.interruption.current === undefined ? run : endInterrupted(run, context)));

/** Stores new messages; an assistant message is stored together with its tool results. */
export const storeMemory = (
  context: Parameters<typeof remember$>[0],
  { memory }: Pick<LoopCall, 'memory'>,
): Phase =>
  memory === noMemory
    ? phase((run) => {
        assertPaired(unstored(run));
        return stored(run);
      })
    : phase((run) => {
        const messages = unstored(run);
        return messages.length + run.late.length === 0
          ? run
          : concat(remember$(context, memory, run, messages), of(stored(run)));
      });

const unstored = ({ messages, stored }: OpenRun): OpenRun['messages'] => messages.slice(stored);

const stored = (run: OpenRun): OpenRun => ({ ...run, stored: run.messages.length, late: [] });

/** Ends the run at `maxIterations`: with a closing request without tools, an error, or the partial answer. */
export const limit = (context: Context, call: LoopCall): Phase =>
  phase((run) => {
    const { maxIterations, onLimit } = call.limits;
    if (run.iteration < maxIterations) return run;
    switch (onLimit) {
      case 'answer':
        return closeRun(run, context, call, {
          reason: 'maxIterations',
          what: 'The maximum number of iterations is reached.',
          unusable: (partial) => usedUp(call, partial),
        });
      case 'error':
        throw usedUp(call);
      case 'partial':
        return end(run, 'maxIterations', partialOf(run, context));
    }
  });

const partialOf = ({ messages }: OpenRun, { info }: Context): AssistantMessage => {
  const last = messages.findLast(
    (message): message is AssistantMessage =>
      message.role === 'assistant' &&
      message.id.startsWith(`${info.callId}/`) &&
      textOf(message).trim() !== '',
  );
  return last === undefined
    ? assistantMessage(info, 'partial', 'The maximum number of iterations is reached.')
    : textOnly(last);
};

const usedUp = ({ limits: { maxIterations } }: LoopCall, partial?: string): MillraceError =>
  new MillraceError(
    'maxIterations',
    `No answer after ${maxIterations} iterations. Raise 'maxIterations', or set onLimit: 'partial'.`,
    partial === undefined ? {} : { partial },
  );

export interface Closing {
  readonly reason: EndReason;
  /** The reached limit, for the model. */
  readonly what: string;
  /** The instruction. Default: to answer from what it has found. */
  readonly instruction?: string;
  /** The position of the step. Default: `summary`. */
  readonly position?: string;
  /** The phase for `usageByPhase`. Default: `closing`. */
  readonly phase?: string;
  /** The error for an empty answer, and for one that a layer cannot use. */
  readonly unusable: (partial?: string) => MillraceError;
}

const eventsOfClosing: RequestEvents = {
  before: (request) => ({ type: 'preSummary', ...request }),
  chunk: { type: 'summaryChunk' },
  after: (answered) => ({ type: 'postSummary', ...answered }),
};

/** Ends a run with a closing request without tools: the model answers from what it has found so far. */
export const closeRun = (
  run: OpenRun,
  context: Context,
  call: LoopCall,
  closing: Closing,
): Eventual<EndedRun> => {
  const {
    position = 'summary',
    instruction = `${closing.what} Answer now, from what you have found so far and without tools; say what is missing.`,
  } = closing;
  const request: UserMessage = {
    id: `${context.info.callId}/${position}/instruction`,
    role: 'user',
    content: [textBlock(instruction)],
  };
  const messages = [...messagesOf(run, context.info), request];
  const asked = askModel(context, call, run, eventsOfClosing, position, {
    ...withoutTools(call.request, call.toolkit.current, call.model),
    messages,
  });
  return andThen(asked, (response) => {
    const spent = spend(run, response.usage, closing.phase ?? 'closing');
    return discardUnlessKept(context, closed(spent, response, context, closing), response.message);
  });
};

const closed = (
  run: OpenRun,
  response: ModelAnswer,
  context: Context,
  closing: Closing,
): EndedRun => {
  switch (response.status) {
    case 'vetoed':
      return endStopped(run, context);
    case 'interrupted':
      return endInterrupted(run, context, response.message, response.instead);
    case 'answered':
      return summed(run, response, context, closing);
  }
};

const summed = (
  run: OpenRun,
  { message, finish, halt, malformed }: Extract<ModelAnswer, { status: 'answered' }>,
  context: Context,
  { reason, what, unusable }: Closing,
): EndedRun => {
  const text = textOf(message);
  if (halt?.feedback !== undefined) throw haltedError(message, halt.feedback);
  if (halt !== undefined) {
    return text === '' ? endStopped(run, context) : end(run, 'stopped', message, finish);
  }
  if (text.trim() === '') throw unusable(malformed?.written);
  // Text that streamed before an unreadable action is not an answer.
  if (malformed?.isAnswer === false) throw unusable(malformed.written);
  const answer = {
    ...message,
    content: message.content.filter(({ type }) => type !== 'tool_call'),
  };
  const ended = end(refuseTools(run, message, what), reason, answer, finish);
  return { ...ended, unusable };
};

const refuseTools = (run: OpenRun, message: AssistantMessage, what: string): OpenRun => {
  const toolCalls = toolCallsOf(message);
  if (toolCalls.length === 0) return run;
  const results: ToolMessage = {
    id: `${message.id}/results`,
    role: 'tool',
    content: toolCalls.map(({ id }) => ({
      type: 'tool_result',
      toolCallId: id,
      content: [textBlock(`Not run: ${what}`)],
      isError: true,
    })),
  };
  return append(run, { ...message, id: `${message.id}/tools`, content: toolCalls }, results);
};

export const haltedError = (message: AssistantMessage, why: string): MillraceError =>
  new MillraceError('guardRejected', `A guard stopped the answer: ${why}`, {
    partial: textOf(message),
  });

/** Ends an interrupted run with the interrupt's message, the partial text, or a short sentence. */
export const endInterrupted = (
  run: OpenRun,
  { info: call, interruption }: Pick<Context, 'info' | 'interruption'>,
  partial?: AssistantMessage,
  instead?: string,
): EndedRun => {
  const message = interruption.current?.message ?? instead;
  return message === undefined && partial !== undefined && textOf(partial) !== ''
    ? end(run, 'interrupted', textOnly(partial))
    : end(run, 'interrupted', assistantMessage(call, 'interrupted', message ?? 'Interrupted.'));
};

export const endStopped = (run: OpenRun, { info: call }: Pick<Context, 'info'>): EndedRun =>
  end(run, 'stopped', stoppedMessage(call));

export const stoppedMessage = (call: Context['info']): AssistantMessage =>
  assistantMessage(call, 'stopped', 'Stopped.');

/** A message without its thinking and tool calls. */
export const textOnly = (message: AssistantMessage): AssistantMessage => ({
  ...message,
  content: [textBlock(textOf(message))],
});

export const assistantMessage = (
  { callId, agent }: Pick<CallInfo, 'callId' | 'agent'>,
  position: string,
  content: string | readonly AssistantBlock[],
): AssistantMessage => ({
  id: `${callId}/${position}`,
  role: 'assistant',
  name: agent.at(-1) ?? '',
  content: typeof content === 'string' ? [textBlock(content)] : content,
});
