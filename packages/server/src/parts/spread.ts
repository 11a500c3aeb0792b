import { Observable, type OperatorFunction } from 'rxjs';

/**
 * Emits each value of the lists that `project` returns, then those of `last`, as `concatMap` would, but without a subscription
 * for each list. An error of `project` errors.
 */
export const spread =
  <T, Value>(
    project: (value: T, index: number) => readonly Value[],
    last: () => readonly Value[] = () => [],
  ): OperatorFunction<T, Value> =>
  (source$) =>
    new Observable((subscriber) => {
      let index = 0;
      const emit = (values: () => readonly Value[]): void => {
        try {
          for (const value of values()) subscriber.next(value);
        } catch (error) {
          subscriber.error(error);
        }
      };
      return source$.subscribe({
        next: (value) => {
          emit(() => project(value, index++));
        },
        error: (error: unknown) => {
          subscriber.error(error);
        },
        complete: () => {
          emit(last);
          subscriber.complete();
        },
      });
    });
