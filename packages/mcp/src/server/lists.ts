import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import {
  defaultIfEmpty,
  defer,
  firstValueFrom,
  isObservable,
  map,
  type Observable,
  type ObservableInput,
  of,
  ReplaySubject,
  share,
  take,
  takeUntil,
  throwIfEmpty,
} from 'rxjs';

/** A list that is fixed, or one that changes: an Observable of lists, which emits now and after each change. */
export type Listed<T> = readonly T[] | Observable<readonly T[]>;

/** A value, or a source whose first value counts. */
export type Given<T> = T | Observable<T> | PromiseLike<T> | AsyncIterable<T>;

/** Emits the value that a function of the program returns or emits first. */
export const given$ = <T>(make: () => Given<T>, missing: () => Error): Observable<T> =>
  defer(() => sourceOf(make())).pipe(take(1), throwIfEmpty(missing));

/** Strings and arrays are values, although `from` accepts them. */
const sourceOf = <T>(given: Given<T>): ObservableInput<T> => {
  if (isObservable(given)) return given;
  if (typeof given !== 'object' || given === null) return of(given);
  if (isPromise(given)) return given;
  return isAsyncIterable(given) ? given : of(given);
};

const isPromise = <T>(given: Given<T>): given is PromiseLike<T> =>
  typeof given === 'object' && given !== null && 'then' in given;

const isAsyncIterable = <T>(given: Given<T>): given is AsyncIterable<T> =>
  typeof given === 'object' && given !== null && Symbol.asyncIterator in given;

/** A list that requests read, kept open while it has a subscriber. */
export interface OpenList<T> {
  readonly list$: Observable<readonly T[]>;
  readonly canChange: boolean;
  /** Rejects with the error of the list. */
  readonly current: (aborted$: Observable<unknown>) => Promise<readonly T[]>;
}

/** Shares a list between requests. `read` checks it, and throws if it is wrong. */
export const openList = <Source, T>(
  listed: Listed<Source>,
  read: (list: readonly Source[]) => readonly T[],
): OpenList<T> => {
  const canChange = isObservable(listed);
  const list$ = (canChange ? listed : of(listed)).pipe(
    defaultIfEmpty<readonly Source[], readonly Source[]>([]),
    map(read),
    share({
      connector: () => new ReplaySubject<readonly T[]>(1),
      // A list that ended stays as it is.
      resetOnComplete: false,
    }),
  );
  return {
    list$,
    canChange,
    current: (aborted$) => firstValueFrom(list$.pipe(takeUntil(aborted$)), { defaultValue: [] }),
  };
};

/** A part of a list. */
export const filtered = <T, Part extends T>(
  { list$, canChange, current }: OpenList<T>,
  isPart: (item: T) => item is Part,
): OpenList<Part> => ({
  list$: list$.pipe(map((list) => list.filter(isPart))),
  canChange,
  current: (aborted$) => current(aborted$).then((list) => list.filter(isPart)),
});

/** A page of a list, and the start of the next one. */
export interface ListPage<T> {
  readonly page: T[];
  readonly next: { readonly nextCursor?: string };
}

const pageSize = 1_000;

/** A page of a list. A cursor is its start; any other is an error for the client. */
export const pageOf = <T>(list: readonly T[], cursor: string | undefined): ListPage<T> => {
  const start = cursor === undefined ? 0 : Number(/^[1-9]\d{0,8}$/.exec(cursor)?.[0]);
  if (!(start === 0 || (start % pageSize === 0 && start < list.length))) {
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      'The cursor is not one of this list. Start again without it.',
    );
  }
  const end = start + pageSize;
  return {
    page: list.slice(start, end),
    next: end < list.length ? { nextCursor: String(end) } : {},
  };
};
