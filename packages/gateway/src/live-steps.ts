import type { Context, Step } from 'millrace';
import type { OpenRun } from 'millrace/phases';
import {
  concatMap,
  defaultIfEmpty,
  defer,
  filter,
  map,
  merge,
  type Observable,
  of,
  take,
} from 'rxjs';
import { first$, type LiveSource, stepIdOf } from './live-source.js';

export const step = <T>(id: string, run: () => Observable<T>) =>
  ({ kind: 'liveInput', id, input: undefined, run }) satisfies Step<T>;

/** Waits for the first value, and records what stands for it. Emits `undefined` if an interrupt ends the wait. */
export const opened$ = <T, Written>(
  source: LiveSource<T>,
  name: string,
  context: Context,
  { write, isWritten, changed }: Recording<T, Written>,
): Observable<{ readonly value: T; readonly written: Written } | undefined> =>
  defer(() => {
    const id = stepIdOf(name, context);
    return context
      .perform<T | undefined>({
        ...step(`${id}/wait`, () => first$(source, name, context)),
        kind: 'wait',
        cut: () => of(undefined),
      })
      .pipe(
        concatMap((value) => {
          if (value === undefined) return of(undefined);
          const written = write(value);
          const recorded$ = context.perform<Written>({
            ...step(id, () => of(written)),
            cut: () => of(written),
            form: {
              isWritten,
              warning: (known) => (isWritten(known) ? changed(known, value) : undefined),
            },
          });
          return recorded$.pipe(map((known) => ({ value, written: known })));
        }),
      );
  });

/** The recorded form of a value that is not JSON. */
export interface Recording<T, Written> {
  readonly write: (value: T) => Written;
  readonly isWritten: (written: unknown) => written is Written;
  /** A warning for a resumed call whose source has something else now. */
  readonly changed: (written: Written, value: T) => string | undefined;
}

interface Change<T, Written> extends Pick<Recording<T, Written>, 'write' | 'isWritten'> {
  readonly isNew: (value: T) => boolean;
}

/** The recorded form of a new value for a turn, otherwise `undefined`. */
export const newest$ = <T, Written>(
  { latest$ }: LiveSource<T>,
  input: string,
  { perform, hooks, local }: Pick<Context, 'perform' | 'hooks' | 'local'>,
  run: OpenRun | undefined,
  { isNew, write, isWritten }: Change<T, Written>,
): Observable<Written | undefined> => {
  // The first turn has the value at the start of the call; a closing request has that of its turn.
  if (run === undefined || run.iteration === 0) return of(undefined);
  const iteration = run.iteration + 1;
  const changed$ = latest$.pipe(filter(isNew), map(write));
  return perform<Written>({
    ...step(stepIdOf(`${iteration}/${input}`, { local }), () =>
      // A resumed call may be faster than its source.
      merge(changed$, of(undefined)).pipe(
        take(1),
        filter((written) => written !== undefined),
      ),
    ),
    optional: true,
    form: { isWritten },
  }).pipe(
    map((written) => {
      hooks.report(iteration, { type: 'liveInput', input, status: 'changed' });
      return written;
    }),
    defaultIfEmpty(undefined),
  );
};
