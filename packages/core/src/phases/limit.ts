import { type Observable, of, throwError } from 'rxjs';
import { MillraceError } from '../errors.js';
import { type AssistantMessage, textOf } from '../message.js';
import type { Context } from '../context.js';
import { type Phase, phase } from '../phase.js';
import { end, type OpenRun, type Run } from '../run.js';
import { says, wordsOf } from '../end-interrupted.js';
import { close$, type ClosingNeeds } from './closing.js';

type Needs = ClosingNeeds & Pick<Context, 'limits'>;

/** Ends the run when its iterations are used up: with one closing request without tools, an error, or what there is. */
export const limit = (context: Needs): Phase =>
  phase((run): Observable<Run> => {
    const { maxIterations, onLimit } = context.limits;
    if (run.iteration < maxIterations) return of(run);
    switch (onLimit) {
      case 'answer':
        return close$(run, context, {
          reason: 'maxIterations',
          what: 'All steps are used up.',
          mute: (partial) => usedUp(context, partial),
        });
      case 'error':
        return throwError(() => usedUp(context));
      case 'partial':
        return of(end(run, 'maxIterations', partialOf(run, context)));
    }
  });

const partialOf = ({ messages }: OpenRun, { call }: Needs): AssistantMessage => {
  const said = messages.findLast(
    (message): message is AssistantMessage =>
      message.role === 'assistant' &&
      message.id.startsWith(`${call.callId}/`) &&
      textOf(message).trim() !== '',
  );
  return said === undefined ? says(call, 'partial', 'All steps are used up.') : wordsOf(said);
};

const usedUp = ({ limits: { maxIterations } }: Needs, partial?: string): MillraceError =>
  new MillraceError(
    'maxIterations',
    `No answer after ${maxIterations} iterations. Raise 'maxIterations', or set onLimit: 'partial'.`,
    partial === undefined ? {} : { partial },
  );
