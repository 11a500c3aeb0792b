import { type MonoTypeOperatorFunction, Observable } from 'rxjs';

/** Runs a task; one that comes while another runs waits for it, or, where it says so, until no other waits either. */
export type Trampoline = (task: () => void, whenIdle?: boolean) => void;

/** Runs tasks one after another, never nested: synchronous turns do not overflow the stack, and all subscribers see events in the same order. RxJS's global `queueScheduler` would drop the turns of other calls on an error. */
export const createTrampoline = (): Trampoline => {
  let waiting: (() => void)[] = [];
  let idle: (() => void)[] = [];
  let running = false;
  const runAll = (first: () => void): void => {
    running = true;
    try {
      first();
      while (waiting.length > 0) {
        const batch = waiting;
        waiting = [];
        for (const next of batch) next();
      }
    } finally {
      if (waiting.length > 0) waiting = [];
      running = false;
    }
  };
  const runIdle = (): void => {
    if (idle.length === 0) return;
    const rest = idle;
    idle = [];
    for (const next of rest) next();
  };
  return (task, whenIdle = false) => {
    if (whenIdle) idle.push(task);
    else if (running) waiting.push(task);
    else {
      try {
        runAll(task);
      } finally {
        runIdle();
      }
    }
    if (whenIdle && !running) runIdle();
  };
};

/** Subscribes to the source when its turn on the trampoline has come. */
export const subscribeOnTrampoline =
  <T>(trampoline: Trampoline): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((subscriber) => {
      trampoline(() => {
        if (!subscriber.closed) source.subscribe(subscriber);
      });
    });
