import { defer, finalize, Observable, tap } from 'rxjs';
import { bindAsyncContext } from '../../flow/async-scope.js';
import { contained } from '../../flow/contained.js';
import type { LimitKind, ModelContext } from '../../models/model.js';
import type { MillraceError } from '../../values/errors.js';
import { createFifo } from '../../flow/fifo.js';

export interface Waiter {
  /** Acquires resources if enough are free. Called on arrival, and again while first in the queue. */
  readonly tryAcquire: (isFirst: boolean) => boolean;
  readonly release: () => void;
  /** Called if it is queued, with the number of those ahead of it. Returns what to call when it starts. */
  readonly onQueued?: ((ahead: number) => (() => void) | undefined) | undefined;
}

/** Starts work in order of arrival, as the resources that it needs become free. */
interface AdmissionGate {
  readonly waiting: number;
  /** Subscribes to the work once admitted. Cold. Releases before subscribers see the end; unsubscribing dequeues. */
  enter$<T>(waiter: Waiter, work: () => Observable<T>): Observable<T>;
  /** Admits all waiters for which enough is free by now. */
  admitWaiting(): void;
}

/** Reports a wait: `queued` when it begins, `admitted` when it ends. */
export const reportingWait =
  (why: LimitKind, { scheduler, report }: Pick<ModelContext, 'scheduler' | 'report'>) =>
  (ahead: number): (() => void) => {
    const since = scheduler.now();
    report({ type: 'queued', why, ahead });
    return () => report({ type: 'admitted', why, waitedMs: Math.max(0, scheduler.now() - since) });
  };

interface Entry {
  readonly waiter: Waiter;
  readonly run: () => void;
  status: 'waiting' | 'admitted' | 'gone';
  dequeue: () => void;
  admitted?: (() => void) | undefined;
}

export const createAdmissionGate = (
  maxQueue: number,
  queueFull: () => MillraceError,
): AdmissionGate => {
  const queue = createLinkedList<Entry>();
  const admitted = createFifo<Entry>();
  let isRunningAdmitted = false;

  const start = (entry: Entry): void => {
    entry.dequeue();
    entry.status = 'admitted';
    admitted.push(entry);
  };
  const admitAll = (): void => {
    let { first } = queue;
    while (first?.waiter.tryAcquire(true) === true) {
      start(first);
      ({ first } = queue);
    }
  };
  // One by one, never nested: work may end, or enter the gate again, while it starts.
  const runAdmitted = (): void => {
    if (isRunningAdmitted) return;
    isRunningAdmitted = true;
    try {
      for (let next = admitted.shift(); next !== undefined; next = admitted.shift()) next.run();
    } finally {
      isRunningAdmitted = false;
    }
  };
  const admitOrQueue = (entry: Entry): boolean => {
    const { waiter } = entry;
    if (waiter.tryAcquire(queue.size === 0)) start(entry);
    else if (queue.size < maxQueue) {
      const ahead = queue.size;
      entry.dequeue = queue.add(entry);
      entry.admitted = waiter.onQueued?.(ahead);
    } else return false;
    return true;
  };
  const settle = (entry: Entry): void => {
    const { status } = entry;
    if (status === 'gone') return;
    entry.status = 'gone';
    if (status === 'waiting') entry.dequeue();
    else entry.waiter.release();
    admitAll();
  };

  return {
    get waiting() {
      return queue.size;
    },
    enter$: (waiter, work) =>
      new Observable((subscriber) => {
        let hasStarted = false;
        const settled = (): void => settle(entry);
        const run = bindAsyncContext(() => {
          if (subscriber.closed) return;
          hasStarted = true;
          entry.admitted?.();
          // Released before subscribers see the end; the next work starts after the teardown.
          const work$ = defer(work).pipe(tap({ error: settled, complete: settled }), contained());
          work$.pipe(finalize(settleAndRun)).subscribe(subscriber);
        });
        const settleAndRun = (): void => {
          settled();
          runAdmitted();
        };
        const entry: Entry = { waiter, run, status: 'waiting', dequeue: () => undefined };
        if (!admitOrQueue(entry)) {
          subscriber.error(queueFull());
          return;
        }
        subscriber.add(() => {
          if (!hasStarted) settleAndRun();
        });
        runAdmitted();
      }),
    admitWaiting: () => {
      admitAll();
      runAdmitted();
    },
  };
};

/** A doubly linked list in order of insertion. Adding and removing take constant time. */
interface LinkedList<T> {
  readonly size: number;
  readonly first: T | undefined;
  /** Appends a value and returns a function that removes it, wherever it is by then. */
  add(value: T): () => void;
}

export const createLinkedList = <T>(): LinkedList<T> => {
  let first: ListNode<T> | undefined;
  let last: ListNode<T> | undefined;
  let size = 0;
  const remove = (node: ListNode<T>): void => {
    if (!node.isListed) return;
    node.isListed = false;
    size -= 1;
    const { previous, next } = node;
    if (previous === undefined) first = next;
    else previous.next = next;
    if (next === undefined) last = previous;
    else next.previous = previous;
  };
  return {
    get size() {
      return size;
    },
    get first() {
      return first?.value;
    },
    add: (value) => {
      const node: ListNode<T> = { value, previous: last, next: undefined, isListed: true };
      if (last === undefined) first = node;
      else last.next = node;
      last = node;
      size += 1;
      return () => remove(node);
    },
  };
};

interface ListNode<T> {
  readonly value: T;
  previous: ListNode<T> | undefined;
  next: ListNode<T> | undefined;
  isListed: boolean;
}
