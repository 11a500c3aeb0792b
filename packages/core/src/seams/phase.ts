import type { MonoTypeOperatorFunction, Observable } from 'rxjs';
import { thenMap } from '../flow/contained.js';
import type { Context } from './context.js';
import type { OpenRun, Run } from '../run.js';

/** An operator on the run: one step of a turn. */
export type Phase = MonoTypeOperatorFunction<Run>;

/** Makes a phase for one call. */
export type PhaseFactory = (context: Context) => Phase;

const seeing = new WeakSet<PhaseFactory>();

/** Marks a phase that is given ended runs too: it may look at their ends, or put another in their place. All others are passed over by them. */
export const alsoEnded = (create: PhaseFactory): PhaseFactory => {
  seeing.add(create);
  return create;
};

export const seesEnded = (create: PhaseFactory): boolean => seeing.has(create);

/** Makes a phase that works on an open run; an ended one passes it untouched. */
export const phase = (work: (run: OpenRun) => Run | Observable<Run>): Phase =>
  thenMap((run) => (run.status === 'open' ? work(run) : run));

export const everyRun = (work: (run: Run) => Run | Observable<Run>): Phase => thenMap(work);
