import { finalize, type ObservableInput, type ObservedValueOf, type OperatorFunction } from 'rxjs';
import type { DemandGate } from '../demand.js';
import { MillraceError } from '../errors.js';
import type { AgentEvent } from '../events.js';
import { checkOptions, having, oneOf, wholeNumber } from '../options.js';
import { createEventQueue } from './merge-deltas.js';
import { createQueue, type Queue } from './queue.js';
import { queuedMap } from './queued-map.js';

/** What `bounded` does when as many events wait as may. */
export type BoundedOptions =
  | {
      /** Pauses the source: closes the gate at its own high-water mark, and opens it at half of that and at the end. */
      readonly overflow: 'pause';
      /** The demand that the source was handed. */
      readonly demand: DemandGate;
    }
  | {
      /** `coalesce` merges waiting deltas; `error` errors with `queueFull`. Structural events are never merged or dropped. */
      readonly overflow: 'coalesce' | 'error';
      /** Events that may wait behind the one that is worked on. Default: 64. */
      readonly max?: number;
    };

/** A `concatMap` over events with a bounded backlog. It completes with the last inner Observable; a source error comes after waiting events, an inner one immediately. Cold or hot, as the events are. */
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
      : () => telling<Event>(refuseAbove(max)),
  );
};

const paused = <Event extends AgentEvent, Inner extends ObservableInput<unknown>>(
  project: (event: Event) => Inner,
  demand: DemandGate,
): OperatorFunction<Event, ObservedValueOf<Inner>> => {
  const map = queuedMap(project, () => telling<Event>((size) => demand.backlog(size)));
  // Not released for good: who subscribes again has the same gate.
  return (event$) =>
    event$.pipe(
      map,
      finalize(() => demand.backlog(0)),
    );
};

const telling = <T>(tell: (size: number) => void): Queue<T> => {
  const queue = createQueue<T>();
  return {
    get size() {
      return queue.size;
    },
    push: (value) => {
      queue.push(value);
      tell(queue.size);
    },
    shift: () => {
      const value = queue.shift();
      tell(queue.size);
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
