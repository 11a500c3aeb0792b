import { catchError, defer, from, type MonoTypeOperatorFunction, type Observable } from 'rxjs';
import { fileFailure } from './failure.js';

/** Does work with the files of a directory, emits what comes of it, and completes. Errors as a store in this directory does. Cold. */
export const fileWork$ = <T>(directory: string, work: () => Promise<T>): Observable<T> =>
  defer(() => from(work())).pipe(failing(directory));

/** Errors as a store in this directory does. */
export const failing = <T>(directory: string): MonoTypeOperatorFunction<T> =>
  catchError((error: unknown) => {
    throw fileFailure(directory)(error);
  });
