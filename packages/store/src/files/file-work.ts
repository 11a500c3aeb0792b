import { catchError, defer, from, type Observable, throwError } from 'rxjs';
import { fileFailure } from './failure.js';

/** Does work with the files of a directory, emits what comes of it, and completes. Errors as a store in this directory does. Cold. */
export const fileWork$ = <T>(directory: string, work: () => Promise<T>): Observable<T> =>
  defer(() => from(work())).pipe(
    catchError((error: unknown) => throwError(() => fileFailure(directory)(error))),
  );
