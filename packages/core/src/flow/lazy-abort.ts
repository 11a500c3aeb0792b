import { type MonoTypeOperatorFunction, tap } from 'rxjs';

/** An abort whose signal is made for whoever asks for it: most tools never do, and it costs more than all else of a run. */
export interface LazyAbort {
  readonly signal: AbortSignal;
  abort(): void;
}

export const createLazyAbort = (): LazyAbort => {
  let controller: AbortController | undefined;
  let isAborted = false;
  return {
    get signal() {
      if (controller === undefined) {
        controller = new AbortController();
        if (isAborted) controller.abort();
      }
      return controller.signal;
    },
    abort: () => {
      isAborted = true;
      controller?.abort();
    },
  };
};

/** Aborts what is left, or fails, before it completes. */
export const abortsUnlessComplete = <T>(abort: LazyAbort): MonoTypeOperatorFunction<T> => {
  let isComplete = false;
  return tap({
    subscribe: () => {
      isComplete = false;
    },
    complete: () => {
      isComplete = true;
    },
    finalize: () => {
      if (!isComplete) abort.abort();
    },
  });
};
