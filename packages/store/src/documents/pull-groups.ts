import { toReadableStream } from 'millrace';
import {
  concatMap,
  defer,
  EMPTY,
  finalize,
  from,
  type Observable,
  type ObservableInput,
  of,
  repeat,
} from 'rxjs';

/**
 * Takes one group of values after another, and the next one only when the work on the group before is done: an
 * AsyncIterable or Iterable waits meanwhile, the values of an Observable are buffered. Unsubscribing closes the source.
 */
export const pullGroups$ = <T, R>(
  source: ObservableInput<T>,
  isFull: (group: readonly T[]) => boolean,
  work: (group: readonly T[]) => Observable<R>,
): Observable<R> =>
  defer(() => {
    const iterator = iteratorOf(source);
    let isDone = false;
    const next = async (): Promise<readonly T[]> => {
      const group: T[] = [];
      while (!isDone && !isFull(group)) {
        const result = await iterator.next();
        if (result.done === true) isDone = true;
        else group.push(result.value);
      }
      return group;
    };
    const leave = (): void => {
      if (isDone) return;
      isDone = true;
      Promise.resolve()
        .then(() => iterator.return?.())
        .catch(() => undefined);
    };
    return defer(() => from(next())).pipe(
      concatMap(work),
      repeat({ delay: () => (isDone ? EMPTY : of(0)) }),
      finalize(leave),
    );
  });

type AnyIterator<T> = AsyncIterator<T> | Iterator<T>;

const iteratorOf = <T>(source: ObservableInput<T>): AnyIterator<T> => {
  if (Symbol.asyncIterator in source) return source[Symbol.asyncIterator]();
  if (Symbol.iterator in source) return source[Symbol.iterator]();
  return toReadableStream(() => from(source))[Symbol.asyncIterator]();
};
