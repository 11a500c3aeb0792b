import { defer, EMPTY, first, ignoreElements, type Observable, Subject, throwError } from 'rxjs';
import { createDemand, type Demand } from '../demand.js';
import { type MillraceError, toMillraceError } from '../errors.js';
import type { Claim, NewRecord } from './call-store-driver.js';
import { halting } from './halt.js';

/** Writes records one append after the other; those that come meanwhile go together in the next. */
export interface Appender {
  readonly push: (record: NewRecord) => void;
  /** Whether everything pushed is written. */
  readonly isIdle: () => boolean;
  /** Completes when everything is written that was pushed before it is subscribed to, or errors when that failed. */
  readonly written$: () => Observable<never>;
  /** Lets nothing more be written. */
  readonly fail: (cause: unknown) => void;
  /** Closed while too much waits. */
  readonly demand: Demand;
}

/** Records that may wait before the call is paused. */
const highWaterMark = 1024;

/** Makes the appender of a claim. What it has been given is written, whoever has left the call by then. */
export const createAppender = (claim: Claim): Appender => {
  const demand = createDemand(highWaterMark);
  const progress$ = new Subject<number>();
  let waiting: NewRecord[] = [];
  let isWriting = false;
  let pushed = 0;
  let written = 0;
  let failure: MillraceError | undefined;
  const fail = (cause: unknown): void => {
    failure ??= halting(toMillraceError(cause, 'store', 'The journal could not be written'));
    waiting = [];
    demand.release();
    progress$.error(failure);
  };
  const isIdle = (): boolean => failure === undefined && waiting.length === 0 && !isWriting;
  const write = (): void => {
    if (isWriting || waiting.length === 0) return;
    const batch = waiting;
    waiting = [];
    isWriting = true;
    demand.backlog(0);
    const complete = (): void => {
      isWriting = false;
      written += batch.length;
      progress$.next(written);
      write();
    };
    try {
      claim.append$(batch).subscribe({ error: fail, complete });
    } catch (cause) {
      fail(cause);
    }
  };
  return {
    demand,
    fail,
    push: (record) => {
      if (failure !== undefined) return;
      waiting.push(record);
      pushed += 1;
      if (waiting.length >= highWaterMark) demand.backlog(waiting.length);
      write();
    },
    isIdle,
    written$: () =>
      defer(() => {
        if (failure !== undefined) return throwError(() => failure);
        if (isIdle()) return EMPTY;
        const mine = pushed;
        return progress$.pipe(
          first((count) => count >= mine),
          ignoreElements(),
        );
      }),
  };
};
