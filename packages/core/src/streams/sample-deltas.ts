import {
  asyncScheduler,
  concat,
  concatMap,
  connect,
  defer,
  EMPTY,
  endWith,
  exhaustMap,
  filter,
  from,
  ignoreElements,
  merge,
  type MonoTypeOperatorFunction,
  of,
  repeat,
  type SchedulerLike,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import { misuse } from '../errors.js';
import type { AgentEvent } from '../events.js';
import { isDelay } from '../options.js';
import { errorLast } from './queued-map.js';
import { createEventQueue, isDelta } from './merge-deltas.js';
import type { Queue } from './queue.js';

/**
 * Emits deltas at most every `ms` milliseconds, for a consumer that draws frames: the first immediately, later ones merged into one event for each message, with joined text and the last `seq` and `at`. Other events do not wait; waiting deltas are emitted before them, so the order stays. Nothing is
 * lost: at the end, and before an error, what waits is emitted. The waits run on `scheduler`.
 */
export const sampleDeltas = <Event extends AgentEvent>(
  ms: number,
  scheduler: SchedulerLike = asyncScheduler,
): MonoTypeOperatorFunction<Event> => {
  const [isPossible, what] = isDelay;
  if (!isPossible(ms)) throw misuse(`sampleDeltas() needs ${what}.`);
  return errorLast((source) =>
    defer(() => {
      const waiting = createEventQueue<Event>();
      const flush$ = defer(() => from(takeAll(waiting)));
      const frame$ = concat(flush$, timer(ms, scheduler).pipe(ignoreElements()));
      const frames$ = frame$.pipe(repeat({ delay: () => (waiting.size > 0 ? of(true) : EMPTY) }));
      return concat(
        source.pipe(
          tap((event) => waiting.push(event)),
          connect((event$) =>
            merge(
              event$.pipe(
                filter((event) => !isDelta(event)),
                concatMap(() => flush$),
              ),
              event$.pipe(
                filter(isDelta),
                exhaustMap(() => frames$),
              ),
            ).pipe(takeUntil(event$.pipe(ignoreElements(), endWith(true)))),
          ),
        ),
        flush$,
      );
    }),
  );
};

/** Lazily, so that an event which comes while others are let through goes behind them. */
function* takeAll<T>(waiting: Queue<T>): Generator<T> {
  for (let value = waiting.shift(); value !== undefined; value = waiting.shift()) yield value;
}
