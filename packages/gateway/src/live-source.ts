import { type Cell, cell, type Context, MillraceError, restoreAsyncContext } from 'millrace';
import { oneOf, type Rule } from 'millrace/values';
import {
  catchError,
  concat,
  defer,
  EMPTY,
  filter,
  ignoreElements,
  isObservable,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  ReplaySubject,
  scan,
  share,
  take,
  throwIfEmpty,
} from 'rxjs';
import { failureOf } from './model-parts.js';

export interface LiveOptions {
  /**
   * Which value a call uses: the one at its start, or at each turn the newest. Default: `call`. A turn never changes in
   * its middle.
   */
  readonly at?: 'call' | 'turn' | undefined;
  /**
   * The effect of an error of the source: it fails calls that need a value (`fail`, the default), or they use the last
   * value (`keep`). Without any value, the call fails in both cases.
   */
  readonly onError?: 'fail' | 'keep' | undefined;
}

declare module 'millrace' {
  interface Events {
    /** A call waits for the first value of a live input, or uses another value from this turn on. */
    readonly liveInput: {
      /** The layer: `liveInstructions`, `liveTools` or `liveModel`. */
      readonly input: string;
      readonly status: 'waiting' | 'changed';
    };
  }
}

export const liveRules: Readonly<Record<keyof LiveOptions, Rule>> = {
  at: oneOf('call', 'turn'),
  onError: oneOf('fail', 'keep'),
};

/** The kind of values of a source. */
export interface Values<T> {
  readonly accepts: (value: unknown) => value is T;
  readonly what: string;
}

/** The values of a source, shared by all calls of a layer. */
export interface LiveSource<T> {
  /** The latest value, or the error of the source. Emits one value, as soon as there is one. */
  readonly latest$: Observable<T>;
  /** Passes a reply on, and keeps the source subscribed until then. */
  holding$<Reply>(reply$: Observable<Reply>): Observable<Reply>;
}

interface State<T> {
  readonly latest?: T;
  readonly failure?: MillraceError;
}

/**
 * Subscribes to the source once while calls run, replays its last value to calls that start later, and unsubscribes
 * when the last call ends. The next call subscribes again.
 */
export const liveSource = <T>(
  input: string,
  source: Observable<T>,
  { accepts, what }: Values<T>,
  onError: 'fail' | 'keep',
): LiveSource<T> => {
  if (!isObservable(source)) {
    throw new MillraceError('config', `${input}() takes an Observable of ${what}.`);
  }
  const named = `The source of ${input}()`;
  const fix =
    onError === 'keep' ? startWith : " To continue with its last value, set onError: 'keep'.";
  const changes$ = defer(() => source).pipe(
    map((value: unknown): State<T> => {
      if (accepts(value)) return { latest: value };
      throw new MillraceError('config', `${named} must emit ${what}.`);
    }),
    throwIfEmpty(
      () => new MillraceError('config', `${named} completed without a value.${startWith}`),
    ),
    catchError((cause: unknown) => of<State<T>>({ failure: failureOf(named, cause, fix) })),
  );
  // A source that has ended keeps its last value, until the last call has ended.
  const state$ = concat(changes$, NEVER).pipe(
    scan<State<T>, State<T>>((before, change) => ({ ...before, ...change }), {}),
    share({ connector: () => new ReplaySubject<State<T>>(1) }),
    restoreAsyncContext(),
  );
  return {
    latest$: state$.pipe(
      map(({ latest, failure }) => {
        if (failure !== undefined && (onError === 'fail' || latest === undefined)) throw failure;
        return latest;
      }),
      filter((latest) => latest !== undefined),
      take(1),
    ),
    holding$: (reply$) => merge(state$.pipe(ignoreElements()), reply$).pipe(take(1)),
  };
};

/** The fix for a source without any value. */
const startWith = ' Give it a first value with startWith(…).';

/** The first value for a call. Until there is one, the call waits, which an event reports. */
export const first$ = <T>(
  { latest$ }: LiveSource<T>,
  input: string,
  { hooks }: Pick<Context, 'hooks'>,
): Observable<T> =>
  merge(
    latest$,
    defer(() => {
      hooks.report(hooks.iteration(), { type: 'liveInput', input, status: 'waiting' });
      return EMPTY;
    }),
  ).pipe(take(1));

/** The id of a step: several layers of a kind in one call have their own. */
export const stepIdOf = (input: string, { local }: Pick<Context, 'local'>): string => {
  const count = local(counts);
  const nth = (count.get(input) ?? 0) + 1;
  count.set(input, nth);
  return nth === 1 ? input : `${input}/${nth}`;
};

const counts: Cell<Map<string, number>> = cell('call', () => new Map<string, number>());
