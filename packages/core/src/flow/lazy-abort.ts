import { type MonoTypeOperatorFunction, Observable, tap } from 'rxjs';

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

/** Aborts when the source is left or fails, also if it was left before its subscription. */
export const abortsUnlessComplete =
  <T>(abort: LazyAbort): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((to) => {
      let isComplete = false;
      const complete = (): void => {
        isComplete = true;
      };
      source.pipe(tap({ complete })).subscribe(to);
      return () => {
        if (!isComplete) abort.abort();
      };
    });
