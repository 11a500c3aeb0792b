import { EMPTY, map, type Observable } from 'rxjs';
import { MillraceError } from '../errors.js';
import { frozen } from '../frozen.js';
import type { Perform, Step } from '../step.js';
import { formOf } from './forms.js';
import { halting } from './halt.js';
import type { OpenJournal } from './journal.js';

/** What happens at the steps of a call that is resumed. */
export interface StepListener {
  /** A step is answered by its record. */
  readonly replayed: (id: string, warning: string | undefined) => void;
  /** A step is run. These messages of an earlier attempt, which was cut off, were shown. */
  readonly begins: (id: string, shown: readonly string[]) => void;
}

/**
 * Performs the steps of one call once, ever: a step without a record is passed on and its value recorded, a recorded one is answered by its record. An optional step that was
 * not recorded while later ones were is skipped: nothing had happened there.
 */
export const recording = (
  journal: OpenJournal,
  callId: string,
  { replayed, begins }: StepListener,
  next: Perform,
): Perform => {
  const { cutShort = new Set<string>() } = journal;
  const passed = new Set<string>();
  /** Whether an optional step has no record, and one that came later has: it is yet to be replayed. */
  const wasSkipped = ({ id, optional }: Pick<Step<unknown>, 'id' | 'optional'>): boolean =>
    optional === true &&
    journal.isWritten?.(`${callId}/${id}`) !== true &&
    loopSteps(journal, callId).some((it) => !passed.has(it));
  return <T>(step: Step<T>) => {
    if (wasSkipped(step)) return EMPTY;
    const { id } = step;
    const { write = itself, isWritten: isForm, read = taken<T>, warning } = formOf(step);
    let made: { readonly value: T } | undefined;
    const work$ = (): Observable<unknown> => {
      const shown = attemptsAt(`${callId}/${id}`, cutShort);
      begins(id, [...shown.keys()]);
      const before = Math.max(0, ...shown.values());
      return next({ ...step, run: (attempt) => step.run(before + attempt) }).pipe(
        map((value) => {
          made = { value };
          return write(value);
        }),
      );
    };
    return journal.step$(`${callId}/${id}`, work$).pipe(
      map((written) => {
        passed.add(id);
        if (made !== undefined) return made.value;
        if (isForm?.(written) === false) throw unreadable(callId, id);
        const value = frozen(read(written));
        replayed(id, warning?.(written));
        return value;
      }),
    );
  };
};

/** The recorded steps of a call's own loop, and its reply. */
const loopSteps = ({ stepIds }: OpenJournal, callId: string): readonly string[] =>
  [...(stepIds?.() ?? [])]
    .filter((id) => id.startsWith(`${callId}/`))
    .map((id) => id.slice(callId.length + 1))
    .filter((id) => /^(?:\d+(?:\/|$)|reply$)/.test(id));

/** Messages of a step that were shown and are not whole, each with the attempt that it was made in. A model that was asked again within one has numbered them with `#`. */
const attemptsAt = (stepId: string, cutShort: ReadonlySet<string>): ReadonlyMap<string, number> =>
  new Map(
    [...cutShort].flatMap((messageId) => {
      const rest = messageId.startsWith(stepId) ? messageId.slice(stepId.length) : undefined;
      const attempt = rest === undefined ? null : /^(?:~(\d+))?(?:#\d+)?$/.exec(rest);
      return attempt === null ? [] : [[messageId, Number(attempt[1] ?? 1)] as const];
    }),
  );

const itself = (value: unknown): unknown => value;

/** What a step has given is what it gives. Steps of ours say how that is checked. */
// eslint-disable-next-line @typescript-eslint/consistent-type-assertions, @typescript-eslint/no-unnecessary-type-parameters
const taken = <T>(written: unknown): T => written as T;

const unreadable = (callId: string, id: string): MillraceError =>
  halting(
    new MillraceError(
      'invalidState',
      `What the journal holds of the step '${id}' of the call '${callId}' is not what such a step gives: it is broken, or of another version of the agent. Begin the call anew, or fork it before this step: fork$(store, callId, { at }).`,
    ),
  );
