import {
  catchError,
  concat,
  defer,
  EMPTY,
  filter,
  mergeMap,
  type Observable,
  type ObservableInput,
  type ObservedValueOf,
  of,
  type OperatorFunction,
  repeat,
} from 'rxjs';
import { createTrampoline, subscribeOnTrampoline } from '../trampoline.js';

export interface Queue<T> {
  readonly size: number;
  push(value: T): void;
  /** Takes the next one out; `undefined` where nothing waits. */
  shift(): T | undefined;
}

/** Makes a queue whose `shift` does not move what is behind it, as that of an array does. */
export const createQueue = <T>(): Queue<T> => {
  let values: T[] = [];
  let first = 0;
  return {
    get size() {
      return values.length - first;
    },
    push: (value) => {
      values.push(value);
    },
    shift: () => {
      if (first === values.length) return undefined;
      const value = values[first];
      first += 1;
      if (first > values.length / 2) {
        values = values.slice(first);
        first = 0;
      }
      return value;
    },
  };
};

/**
 * A `concatMap` whose values wait in a queue of the caller, which may merge, count or refuse (by throwing) them. An error of the source comes after what waits, one of an inner Observable or the queue immediately. Inner Observables that complete synchronously do not nest.
 */
export const queuedMap = <In extends object, Inner extends ObservableInput<unknown>>(
  project: (value: In) => Inner,
  open: () => Queue<In>,
): OperatorFunction<In, ObservedValueOf<Inner>> =>
  errorLast((source) =>
    defer(() => {
      const waiting = open();
      const inTurn = subscribeOnTrampoline<true>(createTrampoline());
      let busy = false;
      const work$ = (first: In): Observable<ObservedValueOf<Inner>> => {
        let value = first;
        const next$ = (): Observable<true> => {
          const next = waiting.shift();
          busy = next !== undefined;
          if (next === undefined) return EMPTY;
          value = next;
          return of<true>(true).pipe(inTurn);
        };
        return defer(() => project(value)).pipe(repeat({ delay: next$ }));
      };
      return source.pipe(
        filter((value) => {
          if (busy) waiting.push(value);
          return !busy;
        }),
        mergeMap((value) => {
          busy = true;
          return work$(value);
        }),
      );
    }),
  );

/** Holds an error of the source back until an operator that lets values wait has emitted all of them. */
export const errorLast =
  <In, Out>(operator: OperatorFunction<In, Out>): OperatorFunction<In, Out> =>
  (source) =>
    defer(() => {
      let end$: Observable<never> = EMPTY;
      const quiet$ = source.pipe(
        catchError((error: unknown) => {
          end$ = defer(() => {
            throw error;
          });
          return EMPTY;
        }),
      );
      return concat(
        quiet$.pipe(operator),
        defer(() => end$),
      );
    });
