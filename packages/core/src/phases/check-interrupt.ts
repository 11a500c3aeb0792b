import { of } from 'rxjs';
import { endInterrupted } from '../end-interrupted.js';
import type { Context } from '../context.js';
import { type Phase, phase } from '../phase.js';

/** Ends the run if it has been interrupted. */
export const checkInterrupt = (context: Pick<Context, 'call' | 'interruption'>): Phase =>
  phase((run) => of(context.interruption.current ? endInterrupted(run, context) : run));
