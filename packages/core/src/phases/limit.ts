import { concat, concatMap, identity, type Observable, of, throwError } from 'rxjs';
import { withoutTools } from '../models/request-options.js';
import type { EndedRun, OpenRun, Run } from '../run.js';
import { append, assertPaired, end, messagesOf, spend } from '../run.js';
import type { Context } from '../seams/context.js';
import { type Phase, phase } from '../seams/phase.js';
import { waited$ } from '../step.js';
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
import { ask$, type ModelAnswer, type Stage } from './ask.js';
import { discardUnlessKept } from './message-builder.js';
import { remember$, type Remembering } from './remember.js';

/** Ends the run if the call was interrupted. */
export const checkInterrupt = (
  context: Pick<Context, 'call' | 'interruption' | 'isInterruptible'>,
): Phase =>
  context.isInterruptible
    ? phase((run) =>
        context.interruption.current === undefined ? run : endInterrupted(run, context),
      )
    : identity;

/** Stores new messages; an assistant message is stored together with its tool results. */
export const storeMemory = (context: Remembering): Phase =>
  context.memory === noMemory
    ? phase((run) => {
        assertPaired(unstored(run));
        return stored(run);
      })
    : phase((run) => {
        const messages = unstored(run);
        return messages.length + run.late.length === 0
          ? run
          : concat(remember$(context, run, messages), of(stored(run)));
      });

const unstored = ({ messages, stored }: OpenRun): OpenRun['messages'] => messages.slice(stored);

const stored = (run: OpenRun): OpenRun => ({ ...run, stored: run.messages.length, late: [] });

type Needs = ClosingNeeds & Pick<Context, 'limits'>;

/** Ends the run at `maxIterations`: with a closing request without tools, an error, or the partial answer. */
export const limit = (context: Needs): Phase =>
  phase((run) => {
    const { maxIterations, onLimit } = context.limits;
    if (run.iteration < maxIterations) return run;
    switch (onLimit) {
      case 'answer':
        return close$(run, context, {
          reason: 'maxIterations',
          what: 'The maximum number of iterations is reached.',
          mute: (partial) => usedUp(context, partial),
        });
      case 'error':
        return throwError(() => usedUp(context));
      case 'partial':
        return end(run, 'maxIterations', partialOf(run, context));
    }
  });

const partialOf = ({ messages }: OpenRun, { call }: Needs): AssistantMessage => {
  const last = messages.findLast(
    (message): message is AssistantMessage =>
      message.role === 'assistant' &&
      message.id.startsWith(`${call.callId}/`) &&
      textOf(message).trim() !== '',
  );
  return last === undefined
    ? assistantMessage(call, 'partial', 'The maximum number of iterations is reached.')
    : withoutToolCalls(last);
};

const usedUp = ({ limits: { maxIterations } }: Needs, partial?: string): MillraceError =>
  new MillraceError(
    'maxIterations',
    `No answer after ${maxIterations} iterations. Raise 'maxIterations', or set onLimit: 'partial'.`,
    partial === undefined ? {} : { partial },
  );

export type ClosingNeeds = Parameters<typeof ask$>[0] &
  Pick<Context, 'interruption' | 'request' | 'output' | 'toolkit'>;

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
  /** Handles an answer that does not match the required form. Default: errors as for an empty one. */
  readonly onInvalid$?: (
    run: OpenRun,
    message: AssistantMessage,
    problems: readonly string[],
  ) => Observable<Run>;
  /** The error for an empty answer. */
  readonly mute: (partial?: string) => MillraceError;
}

const stage: Stage = {
  before: (request) => ({ type: 'preSummary', ...request }),
  chunk: { type: 'summaryChunk' },
  after: (answered) => ({ type: 'postSummary', ...answered }),
};

/** Ends a run with a closing request without tools: the model answers from what it has found so far. */
export const close$ = (run: OpenRun, context: ClosingNeeds, closing: Closing): Observable<Run> => {
  const {
    position = 'summary',
    instruction = `${closing.what} Answer now, from what you have found so far and without tools; say what is missing.`,
  } = closing;
  const request: UserMessage = {
    id: `${context.call.callId}/${position}/instruction`,
    role: 'user',
    content: [textBlock(instruction)],
  };
  const messages = [...messagesOf(run, context.call), request];
  return ask$(context, run, stage, position, {
    ...withoutTools(context.request, context.toolkit, context.model),
    messages,
  }).pipe(
    concatMap((response) =>
      closed$(spend(run, response.usage, closing.phase ?? 'closing'), response, context, closing),
    ),
  );
};

const closed$ = (
  run: OpenRun,
  response: ModelAnswer,
  context: ClosingNeeds,
  closing: Closing,
): Observable<Run> => {
  switch (response.status) {
    case 'vetoed':
      return of(discardUnlessKept(context, endStopped(run, context), response.message));
    case 'interrupted': {
      const ended = endInterrupted(run, context, response.message, response.instead);
      return of(discardUnlessKept(context, ended, response.message));
    }
    case 'answered':
      return summed$(run, response, context, closing);
  }
};

const summed$ = (
  run: OpenRun,
  { message, finish, halt, malformed }: Extract<ModelAnswer, { status: 'answered' }>,
  context: ClosingNeeds,
  { reason, what, mute, onInvalid$ }: Closing,
): Observable<Run> => {
  const kept = (ended: EndedRun): EndedRun => discardUnlessKept(context, ended, message);
  const text = textOf(message);
  if (halt?.feedback !== undefined) throw haltedError(message, halt.feedback);
  if (halt !== undefined) {
    return of(kept(text === '' ? endStopped(run, context) : end(run, 'stopped', message, finish)));
  }
  if (text.trim() === '') throw mute(malformed?.written);
  // Text that streamed before an unreadable action is not an answer.
  if (malformed?.isAnswer === false) throw mute(malformed.written);
  const answer = {
    ...message,
    content: message.content.filter(({ type }) => type !== 'tool_call'),
  };
  const ended = end(refuseTools(run, message, what), reason, answer, finish);
  if (context.output === undefined) return of(kept(ended));
  return waited$(context, `${message.id}/output`, context.output.read$(text)).pipe(
    concatMap((read) => {
      if (read === undefined) return of(kept(endInterrupted(run, context, answer)));
      if (read.valid) return of(kept({ ...ended, output: read.value }));
      if (onInvalid$ === undefined) throw mute(text);
      return onInvalid$(run, message, read.problems);
    }),
  );
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
  { call, interruption }: Pick<Context, 'call' | 'interruption'>,
  partial?: AssistantMessage,
  instead?: string,
): EndedRun => {
  const message = interruption.current?.message ?? instead;
  return message === undefined && partial !== undefined && textOf(partial) !== ''
    ? end(run, 'interrupted', withoutToolCalls(partial))
    : end(run, 'interrupted', assistantMessage(call, 'interrupted', message ?? 'Interrupted.'));
};

export const endStopped = (run: OpenRun, { call }: Pick<Context, 'call'>): EndedRun =>
  end(run, 'stopped', stoppedMessage(call));

export const stoppedMessage = (call: Context['call']): AssistantMessage =>
  assistantMessage(call, 'stopped', 'Stopped.');

/** A message without its thinking and tool calls. */
export const withoutToolCalls = (message: AssistantMessage): AssistantMessage => ({
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
