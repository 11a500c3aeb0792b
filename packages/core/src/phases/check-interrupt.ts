import { identity } from 'rxjs';
import { endInterrupted } from '../end-interrupted.js';
import type { Context } from '../context.js';
import { type Phase, transition } from '../phase.js';

/** Ends the run if it has been interrupted. */
export const checkInterrupt = (
  context: Pick<Context, 'call' | 'interruption' | 'isInterruptible'>,
): Phase =>
  context.isInterruptible
    ? transition((run) =>
        context.interruption.current === undefined ? run : endInterrupted(run, context),
      )
    : identity;
