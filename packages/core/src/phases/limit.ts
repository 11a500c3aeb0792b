import { concatMap, defaultIfEmpty, map, type Observable, of, takeUntil, throwError } from 'rxjs';
import { ask$, type Asked, type Stage } from '../ask.js';
import { discardUnlessKept } from '../discard.js';
import { endInterrupted } from '../end-interrupted.js';
import { endStopped } from '../end-stopped.js';
import { MillraceError } from '../errors.js';
import { haltedError } from '../halted-error.js';
import {
  type AssistantMessage,
  textBlock,
  textOf,
  type ToolMessage,
  toolUsesOf,
  type UserMessage,
} from '../message.js';
import type { Context } from '../context.js';
import { type Phase, phase } from '../phase.js';
import { readOutput$ } from '../read-output.js';
import { append, end, type EndedRun, messagesOf, type OpenRun, type Run, spend } from '../run.js';
import { says } from '../say.js';
import { withoutTools } from '../with-tools.js';

type Needs = Parameters<typeof ask$>[0] &
  Pick<Context, 'request' | 'limits' | 'output' | 'toolkit'>;

const stage: Stage = { pre: 'preSummary', chunk: 'summaryChunk', post: 'postSummary' };

/** Ends the run when its iterations are used up: with one closing request without tools, an error, or what there is. */
export const limit = (context: Needs): Phase =>
  phase((run): Observable<Run> => {
    const { maxIterations, onLimit } = context.limits;
    if (run.iteration < maxIterations) return of(run);
    switch (onLimit) {
      case 'answer':
        return close$(run, context);
      case 'error':
        return throwError(() => usedUp(context));
      case 'partial':
        return of(end(run, 'maxIterations', partialOf(run, context)));
    }
  });

const close$ = (run: OpenRun, context: Needs): Observable<Run> => {
  const instruction: UserMessage = {
    id: `${context.call.callId}/summary/instruction`,
    role: 'user',
    content: [
      textBlock(
        'All steps are used up. Answer now, from what you have found so far and without tools; say what is missing.',
      ),
    ],
  };
  const messages = [...messagesOf(run, context.call), instruction];
  return ask$(context, run, stage, 'summary', {
    ...withoutTools(context.request, context.toolkit, context.model),
    messages,
  }).pipe(
    concatMap((asked) =>
      closed$(spend(run, asked.usage), asked, context).pipe(
        map((ended) => discardUnlessKept(context, ended, asked.message)),
      ),
    ),
  );
};

const closed$ = (run: OpenRun, asked: Asked, context: Needs): Observable<EndedRun> => {
  switch (asked.status) {
    case 'vetoed':
      return of(endStopped(run, context));
    case 'interrupted':
      return of(endInterrupted(run, context, asked.message));
    case 'answered':
      return summed$(run, asked, context);
  }
};

const summed$ = (
  run: OpenRun,
  { message, finish, halt, malformed }: Extract<Asked, { status: 'answered' }>,
  context: Needs,
): Observable<EndedRun> => {
  const text = textOf(message);
  if (halt?.feedback !== undefined) throw haltedError(message, halt.feedback);
  if (halt !== undefined) {
    return of(text === '' ? endStopped(run, context) : end(run, 'stopped', message, finish));
  }
  if (text.trim() === '') throw usedUp(context, malformed?.written);
  // What streamed before a text proved unreadable is no answer.
  if (malformed?.isAnswer === false) throw usedUp(context, malformed.written);
  const answer = { ...message, content: message.content.filter(({ type }) => type !== 'tool_use') };
  const ended = end(refuseTools(run, message), 'maxIterations', answer, finish);
  if (context.output === undefined) return of(ended);
  return readOutput$(context.output, text).pipe(
    takeUntil(context.interruption.cut$),
    map((read) => {
      if (!read.valid) throw usedUp(context, text);
      return { ...ended, output: read.value };
    }),
    defaultIfEmpty(undefined),
    map((checked) => checked ?? endInterrupted(run, context, answer)),
  );
};

/** Tools that were asked for all the same are answered, and not run. */
const refuseTools = (run: OpenRun, message: AssistantMessage): OpenRun => {
  const toolUses = toolUsesOf(message);
  if (toolUses.length === 0) return run;
  const results: ToolMessage = {
    id: `${message.id}/results`,
    role: 'tool',
    content: toolUses.map(({ id }) => ({
      type: 'tool_result',
      toolUseId: id,
      content: [textBlock('Not run: all steps are used up.')],
      isError: true,
    })),
  };
  return append(run, { ...message, id: `${message.id}/tools`, content: toolUses }, results);
};

/** What the assistant said last in this call, or a word. */
const partialOf = ({ messages }: OpenRun, { call }: Needs): AssistantMessage => {
  const said = messages.findLast(
    ({ id, role, content }) =>
      role === 'assistant' && id.startsWith(`${call.callId}/`) && textOf({ content }).trim() !== '',
  );
  return says(call, 'partial', said === undefined ? 'All steps are used up.' : textOf(said));
};

const usedUp = ({ limits: { maxIterations } }: Needs, partial?: string): MillraceError =>
  new MillraceError(
    'maxIterations',
    `No answer after ${maxIterations} iterations. Raise 'maxIterations', or set onLimit: 'partial' to take what there is.`,
    partial === undefined ? {} : { partial },
  );
