import { isMillraceError, MillraceError } from 'millrace';
import { isRecord, messageOf } from 'millrace/values';
import { defer, from, type Observable, retry, timer } from 'rxjs';

/** Time between two attempts, in milliseconds. */
export const retryMs = 500;

/** Work of the database, repeated until it is reachable. Other errors, such as of a missing permission, are `store`. */
export const stored$ = <T>(work: () => Promise<T>): Observable<T> =>
  defer(() => from(work())).pipe(
    retry({
      delay: (error: unknown) => {
        if (isMillraceError(error) || !passes(error)) throw unavailable(error);
        return timer(retryMs);
      },
    }),
  );

/** Whether an error may pass by itself: the connection, a lack of resources, a shutdown, a conflict of transactions. */
const passes = (error: unknown): boolean => {
  const code: unknown = isRecord(error) || error instanceof Error ? Reflect.get(error, 'code') : '';
  return typeof code !== 'string' || !/^[0-9A-Z]{5}$/.test(code) || /^(?:08|40|53|57)/.test(code);
};

/** The error for a database that cannot be used. */
export const unavailable = (cause: unknown): MillraceError =>
  isMillraceError(cause)
    ? cause
    : new MillraceError('store', `The database of the engine failed: ${messageOf(cause)}`, {
        cause,
        retryable: passes(cause),
      });

export const closed = (): MillraceError =>
  new MillraceError('store', 'The engine is closed. Open it again.');

export const exists = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `There is already a call '${callId}'. Follow it with attach$('${callId}'), or use another id.`,
  );

export const unknownCall = (callId: string): MillraceError =>
  new MillraceError(
    'invalidResume',
    `The engine has no call '${callId}': it was never started, or was removed.`,
  );

/** The database is away, or a worker that was taken for dead holds the call. */
export const isTransient = (error: unknown): boolean =>
  isMillraceError(error) &&
  error.retryable &&
  (error.code === 'store' || error.code === 'conflict');
