import {
  asyncScheduler,
  catchError,
  concat,
  concatMap,
  connect,
  defer,
  EMPTY,
  endWith,
  exhaustMap,
  filter,
  finalize,
  from,
  ignoreElements,
  merge,
  mergeMap,
  type MonoTypeOperatorFunction,
  type Observable,
  type ObservableInput,
  type ObservedValueOf,
  of,
  type OperatorFunction,
  repeat,
  type SchedulerLike,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import { restoreAsyncContext } from '../flow/async-context.js';
import type { DemandGate } from '../flow/demand.js';
import { MillraceError, misuse } from '../values/errors.js';
import { type AgentEvent, type EventOf, isGrowing } from '../events.js';
import { checkOptions, having, isDelay, oneOf, wholeNumber } from '../values/options.js';
import { createFifo, type Fifo } from '../flow/fifo.js';
import { createTrampoline, subscribeOnTrampoline } from '../flow/trampoline.js';

export type BoundedOptions =
  | {
      /** Pauses the source: closes the gate at its high-water mark, and opens it at half of that and at the end. */
      readonly overflow: 'pause';
      /** The `demand` option of the call. */
      readonly demand: DemandGate;
    }
  | {
      /** `coalesce` merges waiting deltas, and no other events; `error` errors with `queueFull`. */
      readonly overflow: 'coalesce' | 'error';
      /** Maximum number of waiting events. Default: 64. */
      readonly max?: number;
    };

/**
 * A `concatMap` over events with a bounded backlog. It completes with the last inner Observable; a source error comes
 * after waiting events, an inner one immediately. Cold or hot, as the events are.
 */
export const bounded = <Event extends AgentEvent, Inner extends ObservableInput<unknown>>(
  project: (event: Event) => Inner,
  options: BoundedOptions,
): OperatorFunction<Event, ObservedValueOf<Inner>> => {
  checkBounded(options);
  if (options.overflow === 'pause') return paused(project, options.demand);
  const { overflow, max = 64 } = options;
  return queuedMap(
    project,
    overflow === 'coalesce'
      ? () => createEventQueue<Event>(max)
      : () => reporting<Event>(refuseAbove(max)),
  );
};

const paused = <Event extends AgentEvent, Inner extends ObservableInput<unknown>>(
  project: (event: Event) => Inner,
  demand: DemandGate,
): OperatorFunction<Event, ObservedValueOf<Inner>> => {
  const map = queuedMap(project, () => reporting<Event>((size) => demand.backlog(size)));
  // Not released permanently: a resubscription uses the same gate.
  return (event$) =>
    event$.pipe(
      map,
      finalize(() => demand.backlog(0)),
    );
};

const reporting = <T>(report: (size: number) => void): Fifo<T> => {
  const queue = createFifo<T>();
  return {
    get size() {
      return queue.size;
    },
    push: (value) => {
      queue.push(value);
      report(queue.size);
    },
    shift: () => {
      const value = queue.shift();
      report(queue.size);
      return value;
    },
  };
};

const refuseAbove =
  (max: number) =>
  (size: number): void => {
    if (size > max) {
      throw new MillraceError('queueFull', `More than ${max} events wait for bounded().`);
    }
  };

const overflow = oneOf('pause', 'coalesce', 'error');
const max = wholeNumber(1);
const demand = having('backlog', 'a DemandGate, such as createDemand(16): its mark is the bound');

const checkBounded = (options: BoundedOptions): void => {
  checkOptions('bounded()', options, { overflow, max, demand }, ['overflow']);
  if (options.overflow === 'pause') {
    checkOptions("bounded() with overflow 'pause'", options, { overflow, demand }, ['demand']);
  } else {
    checkOptions(`bounded() with overflow '${options.overflow}'`, options, { overflow, max });
  }
};

/**
 * Emits deltas no more often than every `ms` milliseconds, for a consumer that draws frames: the first immediately, later ones merged into one event for each message, with joined text and the last `seq` and `at`. Other events do not wait; waiting deltas are emitted before them, so the order stays. Nothing is
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

/** Lazy: events that arrive during the iteration come last. */
function* takeAll<T>(waiting: Fifo<T>): Generator<T> {
  for (let value = waiting.shift(); value !== undefined; value = waiting.shift()) yield value;
}

/**
 * A `concatMap` over events for a slow consumer: deltas of a message that wait for the running inner Observable are merged into one event, with joined text and the last `seq` and `at`. Other events are never merged or dropped, no delta of their root call
 * overtakes them, and `seq` still increases. Completes with the last inner Observable. An error of the source comes after what waits, an error of an inner one immediately.
 */
export const coalesceMap = <Event extends AgentEvent, Inner extends ObservableInput<unknown>>(
  project: (event: Event) => Inner,
): OperatorFunction<Event, ObservedValueOf<Inner>> => queuedMap(project, createEventQueue<Event>);

interface Entry<Event> {
  last: Event;
  readonly deltas: string[];
  /** The number of its positions in the queue; only the last one counts. 0 after removal. */
  places: number;
}

/**
 * Makes a queue that merges deltas while at least `mergeFrom` events wait: a delta is merged with the waiting event that it continues, and takes its own place in the order. Nothing overtakes a structural event of its root call. Each event costs constant time; text is joined once.
 */
const createEventQueue = <Event extends AgentEvent>(mergeFrom = 0): Fifo<Event> => {
  const queue = createFifo<Entry<Event>>();
  /** By root call, and there by call: the last waiting delta since the last structural event. */
  const open = new Map<string, Map<string, Entry<Event>>>();
  let size = 0;

  const place = (entry: Entry<Event>): void => {
    entry.places += 1;
    queue.push(entry);
  };
  const add = (event: Event, deltas: string[]): Entry<Event> => {
    const entry = { last: event, deltas, places: 0 };
    size += 1;
    place(entry);
    return entry;
  };
  const addDelta = (event: Event, delta: string): void => {
    const { rootId, callId } = event;
    const calls = open.get(rootId) ?? new Map<string, Entry<Event>>();
    const waiting = calls.get(callId);
    if (waiting !== undefined && size >= mergeFrom && continues(waiting.last, event)) {
      waiting.last = event;
      waiting.deltas.push(delta);
      place(waiting);
    } else {
      open.set(rootId, calls.set(callId, add(event, [delta])));
    }
  };
  const close = (entry: Entry<Event>): void => {
    const { rootId, callId } = entry.last;
    const calls = open.get(rootId);
    if (calls?.get(callId) !== entry) return;
    calls.delete(callId);
    if (calls.size === 0) open.delete(rootId);
  };
  return {
    get size() {
      return size;
    },
    push: (event) => {
      if (isDelta(event)) {
        addDelta(event, event.delta);
      } else {
        open.delete(event.rootId);
        add(event, []);
      }
    },
    shift: () => {
      let entry = queue.shift();
      while (entry !== undefined) {
        entry.places -= 1;
        if (entry.places === 0) break;
        entry = queue.shift();
      }
      if (entry === undefined) return undefined;
      size -= 1;
      close(entry);
      return mergeDeltas(entry.last, entry.deltas);
    },
  };
};

/** A delta. Other events are structural: they are never merged. */
type DeltaEvent = EventOf<'reasoningChunk' | 'summaryChunk' | 'planningChunk'>;

const isDelta = <Event extends AgentEvent>(event: Event): event is Event & DeltaEvent =>
  (event.type === 'reasoningChunk' ||
    event.type === 'summaryChunk' ||
    event.type === 'planningChunk') &&
  isGrowing(event);

export const isAnswerDelta = <Event extends AgentEvent>(
  event: Event,
): event is Event & EventOf<'reasoningChunk' | 'summaryChunk'> =>
  event.type === 'reasoningChunk' || event.type === 'summaryChunk';

/** Whether an event continues the text of an earlier event of its call. */
const continues = (earlier: AgentEvent, later: AgentEvent): boolean =>
  isDelta(earlier) &&
  isDelta(later) &&
  earlier.messageId === later.messageId &&
  earlier.type === later.type &&
  earlier.kind === later.kind &&
  earlier.textPhase === later.textPhase &&
  earlier.toolCall?.id === later.toolCall?.id;

/** Merges consecutive deltas into the last event. */
const mergeDeltas = <Event extends AgentEvent>(last: Event, deltas: readonly string[]): Event => {
  if (deltas.length < 2) return last;
  const merged = { ...last, delta: deltas.join('') };
  Object.freeze(merged);
  return merged;
};

/**
 * A `concatMap` whose values wait in a queue of the caller, which may merge, count or refuse (by throwing) them. An
 * error of the source comes after what waits, one of an inner Observable or the queue immediately. Inner Observables
 * that complete synchronously do not nest.
 */
export const queuedMap = <In extends object, Inner extends ObservableInput<unknown>>(
  project: (value: In) => Inner,
  open: () => Fifo<In>,
): OperatorFunction<In, ObservedValueOf<Inner>> =>
  errorLast((source) =>
    defer(() => {
      const waiting = open();
      const inTurn = subscribeOnTrampoline<true>(createTrampoline());
      let busy = false;
      const work$ = (first: In): Observable<ObservedValueOf<Inner>> => {
        let value = first;
        const next$ = (): Observable<true> => {
          const next = waiting.shift();
          busy = next !== undefined;
          if (next === undefined) return EMPTY;
          value = next;
          return of<true>(true).pipe(inTurn);
        };
        return defer(() => project(value)).pipe(restoreAsyncContext(), repeat({ delay: next$ }));
      };
      return source.pipe(
        filter((value) => {
          if (busy) waiting.push(value);
          return !busy;
        }),
        mergeMap((value) => {
          busy = true;
          return work$(value);
        }),
      );
    }),
  );

/** Holds an error of the source back until an operator that lets values wait has emitted all of them. */
export const errorLast =
  <In, Out>(operator: OperatorFunction<In, Out>): OperatorFunction<In, Out> =>
  (source) =>
    defer(() => {
      let end$: Observable<never> = EMPTY;
      const quiet$ = source.pipe(
        catchError((error: unknown) => {
          end$ = defer(() => {
            throw error;
          });
          return EMPTY;
        }),
      );
      return concat(
        quiet$.pipe(operator),
        defer(() => end$),
      );
    });
