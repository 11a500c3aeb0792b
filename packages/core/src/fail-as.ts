import { catchError, type MonoTypeOperatorFunction, throwError } from 'rxjs';
import { type MillraceErrorCode, toMillraceError } from './errors.js';

/** Marks a seam: an error from beyond it becomes a `MillraceError` with this code, unless it is one. */
export const failAs = <T>(code: MillraceErrorCode, what: string): MonoTypeOperatorFunction<T> =>
  catchError((cause: unknown) => throwError(() => toMillraceError(cause, code, what)));
