import { type MonoTypeOperatorFunction, Observable } from 'rxjs';
import { bindAsyncContext } from './async-scope.js';
import { emitWork, type Eventual } from './eventual.js';

/** Runs a task after the running one, or, with `whenIdle`, after all waiting ones. */
export type Trampoline = (task: () => void, when?: 'whenIdle') => void;

/**
 * Runs tasks one after another, never nested, so synchronous turns do not overflow the stack, and all subscribers see
 * events in the same order. Each runs in its own async context. RxJS's global `queueScheduler` would drop tasks of other calls on an error.
 */
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
    const rest = idle;
    idle = [];
    for (const next of rest) next();
  };
  return (task, when) => {
    const whenIdle = when === 'whenIdle';
    if (whenIdle) idle.push(bindAsyncContext(task));
    else if (running) waiting.push(bindAsyncContext(task));
    else {
      try {
        runAll(task);
      } finally {
        if (idle.length > 0) runIdle();
      }
    }
    if (whenIdle && !running) runIdle();
  };
};

export const subscribeOnTrampoline =
  <T>(trampoline: Trampoline): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((subscriber) => {
      trampoline(() => {
        if (!subscriber.closed) source.subscribe(subscriber);
      });
    });

/** As `deferWork`, in a turn of a trampoline. */
export const deferWorkOn = <T>(trampoline: Trampoline, work: () => Eventual<T>): Observable<T> =>
  new Observable((to) => trampoline(() => emitWork(to, work)));
