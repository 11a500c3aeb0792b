import type { Observable } from 'rxjs';
import { thenMap } from '../flow/contained.js';
import type { OpenRun, Run } from '../run.js';
import type { Phase, PhaseFactory } from './layer.js';

const seeing = new WeakSet<PhaseFactory>();

/** Marks a phase that also gets ended runs, and may replace them. Other phases only get open runs. */
export const alsoEnded = (create: PhaseFactory): PhaseFactory => {
  seeing.add(create);
  return create;
};

export const seesEnded = (create: PhaseFactory): boolean => seeing.has(create);

/** Creates a phase that works on open runs; ended runs pass unchanged. */
export const phase = (work: (run: OpenRun) => Run | Observable<Run>): Phase =>
  thenMap((run) => (run.status === 'open' ? work(run) : run));
