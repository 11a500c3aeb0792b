import { defer, map, of, take, toArray } from 'rxjs';
import type { Context } from './context.js';
import { MillraceError } from './errors.js';
import { failAs } from './fail-as.js';
import { isRecord } from './json.js';
import { type Phase, phase, type PhaseFactory } from './phase.js';
import { nativePhases } from './phase-list.js';
import type { Run } from './run.js';

/** Makes a phase for a call, and holds it to one run of one where it is not ours. */
export const oneRun = (create: PhaseFactory, context: Context): Phase => {
  const work = create(context);
  if (nativePhases.includes(create)) return work;
  const name = create.name === '' ? 'a phase without a name' : `the phase '${create.name}'`;
  return phase((run) =>
    defer(() => of<Run>(run).pipe(work)).pipe(
      failAs('unknown', `In ${name}`),
      take(2),
      toArray(),
      map((made) => onlyOne(made, name)),
    ),
  );
};

const onlyOne = ([run, ...more]: readonly Run[], name: string): Run => {
  if (isRun(run) && more.length === 0) return run;
  throw new MillraceError(
    'invalidState',
    `Of one run, ${name} made ${more.length > 0 ? 'more than one' : run === undefined ? 'none' : 'something else'}. A phase must make one run of one: the run as it was, or what a transition made of it.`,
  );
};

const isRun = (value: unknown): value is Run =>
  isRecord(value) && typeof value['status'] === 'string' && Array.isArray(value['messages']);
