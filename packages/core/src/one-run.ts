import { defer, map, of, take, toArray } from 'rxjs';
import { contained } from './contained.js';
import type { Context } from './context.js';
import { MillraceError } from './errors.js';
import { failAs } from './fail-as.js';
import { isRecord } from './json.js';
import { everyRun, type Phase, phase, type PhaseFactory, seesEnded } from './phase.js';
import { nativePhases } from './phase-list.js';
import { endReasons } from './reply.js';
import { type Run, unanswered, unpaired } from './run.js';

export const oneRun = (create: PhaseFactory, context: Context): Phase => {
  if (nativePhases.includes(create)) return create(context);
  const name = create.name === '' ? 'a phase without a name' : `the phase '${create.name}'`;
  let work: Phase | undefined;
  const each = seesEnded(create) ? everyRun : phase;
  return each((run) =>
    defer(() => of<Run>(run).pipe((work ??= create(context)))).pipe(
      contained(),
      take(2),
      toArray(),
      map((made) => onlyOne(made, name)),
      failAs('unknown', `In ${name}`),
    ),
  );
};

const onlyOne = (made: readonly unknown[], name: string): Run => {
  const [run, ...more] = made;
  if (more.length > 0 || !isRun(run)) {
    const what = more.length > 0 ? 'more than one' : made.length === 0 ? 'none' : 'something else';
    throw new MillraceError(
      'invalidState',
      `Of one run, ${name} made ${what}. A phase must make one run of one: the run as it was, or what a transition made of it.`,
    );
  }
  const fault = unpairedIn(run);
  if (fault === undefined) return run;
  throw new MillraceError(
    'invalidState',
    `The run that ${name} made holds ${fault}. Add an assistant message and its tool message together.`,
  );
};

const unpairedIn = (run: Run): string | undefined => {
  const { messages } = run;
  const settled = unanswered(run) === undefined ? messages : messages.slice(0, -1);
  return unpaired(settled) ?? (run.status === 'open' ? unpaired(run.feedback) : undefined);
};

const isRun = (value: unknown): value is Run =>
  isRecord(value) &&
  (value['status'] === 'open' || endReasons.some((reason) => reason === value['status'])) &&
  Array.isArray(value['messages']);
