import { concat, identity, of, throwError } from 'rxjs';
import type { Context } from '../context.js';
import { endInterrupted, says, wordsOf } from '../end-interrupted.js';
import { MillraceError } from '../errors.js';
import { noMemory } from '../memory.js';
import { type AssistantMessage, textOf } from '../message.js';
import { type Phase, phase } from '../phase.js';
import { remember$, type Remembering } from '../remember.js';
import { assertPaired, end, type OpenRun } from '../run.js';
import { close$, type ClosingNeeds } from './closing.js';

/** Ends the run if it has been interrupted. */
export const checkInterrupt = (
  context: Pick<Context, 'call' | 'interruption' | 'isInterruptible'>,
): Phase =>
  context.isInterruptible
    ? phase((run) =>
        context.interruption.current === undefined ? run : endInterrupted(run, context),
      )
    : identity;

/** Writes what memory does not have yet, whole: an assistant message goes together with its tools' results. */
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

const stored = (run: OpenRun): OpenRun => ({
  ...run,
  stored: run.messages.length,
  late: [],
});

type Needs = ClosingNeeds & Pick<Context, 'limits'>;

/** Ends the run when its iterations are used up: with one closing request without tools, an error, or what there is. */
export const limit = (context: Needs): Phase =>
  phase((run) => {
    const { maxIterations, onLimit } = context.limits;
    if (run.iteration < maxIterations) return run;
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
        return end(run, 'maxIterations', partialOf(run, context));
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
