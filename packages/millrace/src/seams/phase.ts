import { mergeMap, of } from 'rxjs';
import { type Eventual, deferWork } from '../flow/eventual.js';
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
export const phase = (work: (run: OpenRun) => Eventual<Run>): Phase =>
  phaseOfAny((run) => (run.status === 'open' ? work(run) : run));

/** Creates a phase that works on open and ended runs. */
export const phaseOfAny = (work: (run: Run) => Eventual<Run>): Phase => {
  const operator: Phase = mergeMap((run) => deferWork(() => work(run)));
  works.set(operator, work);
  return operator;
};

const works = new WeakMap<Phase, (run: Run) => Eventual<Run>>();

/** Runs a phase for one run: one of `phase()` as a function, any other one as an operator. */
export const runPhase = (operator: Phase, run: Run): Eventual<Run> => {
  const work = works.get(operator);
  return work === undefined ? of(run).pipe(operator) : work(run);
};
