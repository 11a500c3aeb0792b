import { type MonoTypeOperatorFunction, Observable, Subscription } from 'rxjs';
import { hear } from './contained.js';

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

/** Also aborts if its observer had left before it subscribed, as one does whose tool ends the call. */
export const abortsUnlessComplete =
  <T>(abort: LazyAbort): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((to) => {
      let isComplete = false;
      const running = new Subscription();
      to.add(running);
      to.add(() => {
        if (!isComplete) abort.abort();
      });
      const complete = (): void => {
        isComplete = true;
        to.complete();
      };
      const next = (value: T): void => to.next(value);
      const error = (cause: unknown): void => to.error(cause);
      hear(source, { next, error, complete }, running);
    });
