import { defer, map, type Observable } from 'rxjs';
import { MillraceError } from '../errors.js';
import { frozen } from '../frozen.js';
import { halting } from './halt.js';
import { type OpenJournal, unwritten } from './journal.js';

/** How what a step gives is written down, and read again. */
export interface StepForm<T> {
  /** Makes plain JSON of it. Default: it is that. */
  readonly write?: (value: T) => unknown;
  /** Tells whether what was written down is what such a step gives: files may be broken. */
  readonly isWritten: (written: unknown) => boolean;
  /** Makes of what was written down what the step has given. Default: it is that. */
  readonly read?: (written: unknown) => T;
  /** What of it is lost in being written down, and has to be told. */
  readonly warning?: (written: unknown) => string | undefined;
}

/**
 * Runs a step of a call through its journal: emits what the work emits, or what was written down of it before. `id` is its place in the call, such as
 * `3/0`. Without a form, whatever was written down is taken for what the work gives. The work is told which attempt it is, from 1: more, where messages of it were shown before the call was broken off.
 */
export type RunStep = <T>(
  id: string,
  work: (attempt: number) => Observable<T>,
  form?: StepForm<T>,
) => Observable<T>;

/** What happens at the steps of a call that goes on where it was broken off. */
export interface StepListener {
  /** A step is answered by what was written down. */
  readonly replayed: (id: string, warning: string | undefined) => void;
  /** A step is run. Of an earlier attempt, broken off, these messages were shown. */
  readonly begins: (id: string, shown: readonly string[]) => void;
}

/** Makes the steps of one call. */
export const stepsOf = (
  journal: OpenJournal,
  callId: string,
  { replayed, begins }: StepListener,
): RunStep => {
  // Not even an Observable more where nothing is written down.
  if (journal === unwritten) return (_id, work) => work(1);
  const { cutShort = new Set<string>() } = journal;
  return <T>(
    id: string,
    work: (attempt: number) => Observable<T>,
    form: Partial<StepForm<T>> = {},
  ) =>
    defer(() => {
      const { write = itself, isWritten, read = taken<T>, warning } = form;
      let made: { readonly value: T } | undefined;
      return journal
        .step$(`${callId}/${id}`, () => {
          const shown = attemptsAt(`${callId}/${id}`, cutShort);
          begins(id, [...shown.keys()]);
          return work(Math.max(0, ...shown.values()) + 1).pipe(
            map((value) => {
              made = { value };
              return write(value);
            }),
          );
        })
        .pipe(
          map((written) => {
            if (made !== undefined) return made.value;
            if (isWritten?.(written) === false) throw unreadable(callId, id);
            const value = frozen(read(written));
            replayed(id, warning?.(written));
            return value;
          }),
        );
    });
};

/** The id of the message that a step makes in one of its attempts. */
export const messageIdAt = (stepId: string, attempt: number): string =>
  attempt === 1 ? stepId : `${stepId}~${attempt}`;

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
