import { concatMap, map, type MonoTypeOperatorFunction, type Observable, of } from 'rxjs';
import type { Context } from './context.js';
import type { OpenRun, Run } from './run.js';

/** An operator on the run: one step of a turn. */
export type Phase = MonoTypeOperatorFunction<Run>;

/** Makes a phase for one call. */
export type PhaseFactory = (context: Context) => Phase;

/** Makes a phase that works on an open run; an ended one passes it untouched. */
export const phase = (work: (run: OpenRun) => Observable<Run>): Phase =>
  concatMap((run) => (run.status === 'open' ? work(run) : of(run)));

/** Makes a phase that needs nothing but the run, and waits for nothing. */
export const transition = (change: (run: OpenRun) => Run): Phase =>
  map((run) => (run.status === 'open' ? change(run) : run));
