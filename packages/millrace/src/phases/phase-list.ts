import { defer, map, of, take, toArray } from 'rxjs';
import { contained, failAs } from '../flow/contained.js';
import type { Phase, PhaseFactory, Layer } from '../seams/layer.js';
import { phase, phaseOfAny, seesEnded } from '../seams/phase.js';
import { MillraceError, misuse } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import { type Run, unanswered } from '../run.js';
import { unpaired } from '../values/pairing.js';

/** A layer that edits the phases of a turn. */
export type PhaseEdit = Layer & Required<Pick<Layer, 'turn'>>;

/** Inserts a phase before the first occurrence of another. */
export const insertBefore = (place: PhaseFactory, added: PhaseFactory): PhaseEdit =>
  edit('insertBefore', place, (phases, at) => phases.toSpliced(at, 0, added));

/** Inserts a phase after the first occurrence of another. */
export const insertAfter = (place: PhaseFactory, added: PhaseFactory): PhaseEdit =>
  edit('insertAfter', place, (phases, at) => phases.toSpliced(at + 1, 0, added));

/** Replaces each occurrence of a phase. */
export const replacePhase = (former: PhaseFactory, added: PhaseFactory): PhaseEdit =>
  edit('replacePhase', former, (phases) => phases.map((it) => (it === former ? added : it)));

/** Removes a phase, and with it what it guarantees. */
export const withoutPhase = (dropped: PhaseFactory): PhaseEdit =>
  edit('withoutPhase', dropped, (phases) => phases.filter((it) => it !== dropped));

const edit = (
  name: string,
  place: PhaseFactory,
  change: (phases: readonly PhaseFactory[], at: number) => readonly PhaseFactory[],
): PhaseEdit => ({
  name,
  turn: (phases) => {
    const at = phases.indexOf(place);
    if (at !== -1) return change(phases, at);
    const names = phases.map((it) => it.name || 'one without a name').join(', ');
    throw misuse(`${name}(): the list has no such phase. It has: ${names}.`);
  },
});

/** Creates a phase from outside the kernel, and checks that it emits one run. */
export const checkedPhase =
  (create: PhaseFactory): PhaseFactory =>
  (context, call) => {
    const name = create.name === '' ? 'a phase without a name' : `the phase '${create.name}'`;
    let work: Phase | undefined;
    const each = seesEnded(create) ? phaseOfAny : phase;
    return each((run) =>
      defer(() => of<Run>(run).pipe((work ??= create(context, call)))).pipe(
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
      `For one run, ${name} emitted ${what}. A phase must emit one run: the same, or one that a transition returned.`,
    );
  }
  const fault = unpairedIn(run);
  if (fault === undefined) return run;
  throw new MillraceError(
    'invalidState',
    `The run that ${name} emitted has ${fault}. Add an assistant message and its tool message together.`,
  );
};

const unpairedIn = (run: Run): string | undefined => {
  const { messages } = run;
  const settled = unanswered(run) === undefined ? messages : messages.slice(0, -1);
  return unpaired(settled) ?? (run.status === 'open' ? unpaired(run.feedback) : undefined);
};

const isRun = (value: unknown): value is Run =>
  isRecord(value) && typeof value['status'] === 'string' && Array.isArray(value['messages']);
