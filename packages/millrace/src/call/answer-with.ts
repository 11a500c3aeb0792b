import type { Context } from '../seams/layer.js';
import { type Call, answerForm } from '../seams/call.js';
import { type ContentBlock, answerTextOf } from '../values/message.js';
import { type Observable, defer, of, map } from 'rxjs';
import type { Reply } from '../values/reply.js';
import { hasEnded, end, type Run, reopen, type EndedRun } from '../run.js';
import { endInterrupted, assistantMessage } from '../phases/limit.js';
import { concludeRun, runOfCall } from './answer.js';
import { loopProgress, callProgress } from '../seams/progress.js';
import { discard } from '../phases/message-builder.js';
import { MillraceError } from '../values/errors.js';

/**
 * Answers a call with your own text, such as a cached answer, or an apology after its loop failed. If the loop has begun or ended, the
 * reply has its messages, tool calls and usage, and observers see its answer discarded. A vetoed or interrupted call keeps its own reply.
 * An answer that does not match `output(…)` errors with `invalidResponse`.
 */
export const answerWith = (
  context: Pick<Context, 'info' | 'hooks' | 'interruption' | 'local' | 'scheduler'>,
  call: Call,
  answer: string | readonly ContentBlock[],
): Observable<Reply> =>
  defer(() => {
    const run = runToAnswer(call, context);
    if (hasEnded(run)) return of(run);
    if (context.interruption.current !== undefined) return of(endInterrupted(run, context));
    const ended = end(run, 'answer', assistantMessage(context.info, 'answer', answer));
    return withOutput$(ended, context, 'The answer of a layer');
  }).pipe(map((ended) => concludeRun(ended, call, context)));

/** The run that an answer of a layer ends: that of the loop, which may have failed or ended. Without one, that of the call. */
const runToAnswer = (
  call: Call,
  context: Pick<Context, 'info' | 'hooks' | 'interruption' | 'local'>,
): Run => {
  const { concluded: run = context.local(loopProgress).run } = context.local(callProgress);
  if (run === undefined) return runOfCall(call, context);
  if (!hasEnded(run)) return { ...run, iteration: context.hooks.iteration() };
  if (call.status !== 'prepared' || context.interruption.current !== undefined) return run;
  discard(context, run.iteration, run.answer, 'stopped');
  return reopen(run);
};

/** Reads the output of an answer that no model can correct. Errors with `invalidResponse` if it is invalid. */
export const withOutput$ = (
  ended: EndedRun,
  { local }: Pick<Context, 'local'>,
  what: string,
): Observable<EndedRun> => {
  const { required } = local(answerForm);
  if (required === undefined) return of(ended);
  const partial = answerTextOf(ended.answer);
  return required.read$(partial).pipe(
    map((read) => {
      if (read.valid) return { ...ended, output: read.value };
      const why = `${what} is not a valid output: ${read.problems.join('; ')}`;
      throw new MillraceError('invalidResponse', why, { partial });
    }),
  );
};
