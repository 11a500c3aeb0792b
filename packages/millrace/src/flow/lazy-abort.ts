import { type MonoTypeOperatorFunction, pipe, tap } from 'rxjs';
import { finalizeNow } from './contained.js';

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
export const abortsUnlessComplete = <T>(abort: LazyAbort): MonoTypeOperatorFunction<T> => {
  let isComplete = false;
  return pipe(
    tap({
      subscribe: () => {
        isComplete = false;
      },
      complete: () => {
        isComplete = true;
      },
    }),
    finalizeNow(() => {
      if (!isComplete) abort.abort();
    }),
  );
};
