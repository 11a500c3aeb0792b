import { isObservable, type MonoTypeOperatorFunction, Observable, Subscription } from 'rxjs';
import { hear } from './contained.js';
import { deferWork, type Eventual, unlessLeft } from './eventual.js';

/** An abort whose signal, the most expensive part of a tool call, is created on first use. */
export class LazyAbort {
  #controller: AbortController | undefined;
  #isAborted = false;

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isAborted) this.#controller.abort();
    return this.#controller.signal;
  }

  abort(): void {
    this.#isAborted = true;
    this.#controller?.abort();
  }
}

/** Calls `fail` when the time is up, unless its owner has unsubscribed. */
export type TimeLimit = (owner: Subscription, fail: (error: unknown) => void) => void;

/** As `catchError`, for work that may need no Observable. It aborts unless it completes, up to a time limit. */
export const recover = <T>(
  work: () => Eventual<T>,
  handle: (cause: unknown) => Eventual<T>,
  abort?: LazyAbort,
  limit?: TimeLimit,
): Eventual<T> => {
  try {
    const value = abort === undefined ? work() : unlessLeft(work, () => abort.abort());
    return isObservable(value) ? value.pipe(supervised(abort, handle, limit)) : value;
  } catch (cause) {
    return handle(cause);
  }
};

/**
 * Aborts unless the source completes, also if its observer had left before it subscribed, as one does whose tool ends the call. Handles
 * an error, or that the time is up, when the source has stopped. All of this is one subscription.
 */
export const supervised =
  <T>(
    abort?: LazyAbort,
    handle?: (cause: unknown) => Eventual<T>,
    limit?: TimeLimit,
  ): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((to) => {
      let isComplete = false;
      const running = new Subscription();
      to.add(running);
      to.add(() => {
        if (!isComplete) abort?.abort();
      });
      const complete = (): void => {
        isComplete = true;
        to.complete();
      };
      const error = (cause: unknown): void => {
        running.unsubscribe();
        if (handle === undefined) to.error(cause);
        else deferWork(() => handle(cause)).subscribe(to);
      };
      hear(source, { next: (value) => to.next(value), error, complete }, running);
      limit?.(running, error);
    });
