import { type AgentEvent, coalesceMap, type EventOf } from 'millrace';
import { checkOptions, defined, having, isDelay, isFunction, wholeNumber } from 'millrace/values';
import {
  asyncScheduler,
  catchError,
  concatMap,
  defer,
  from,
  map,
  type Observable,
  type ObservableInput,
  type ObservedValueOf,
  of,
  type OperatorFunction,
  reduce,
  type SchedulerLike,
  tap,
  timeout,
} from 'rxjs';

export interface DigestMapOptions {
  /**
   * Summarises text that has piled up: emits strings, which are joined. It is subscribed to while the consumer waits, and
   * unsubscribed from with it. If it errors, emits nothing or is not shorter, the consumer gets the plain text.
   */
  // The name has no $: a Promise is fine, too.
  // eslint-disable-next-line rxjs-x/finnish
  readonly summarise: (piled: string, event: DeltaOf) => ObservableInput<string>;
  /** The least number of characters that are summarised; shorter piles are merged. Default: 2,000. */
  readonly from?: number | undefined;
  /** How long a summary may take, in milliseconds; then the plain text is passed on. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
  /** The scheduler of `timeoutMs`. Default: `asyncScheduler`. */
  readonly scheduler?: SchedulerLike | undefined;
}

/** A delta of a message. */
export type DeltaOf = EventOf<'reasoningChunk' | 'summaryChunk' | 'planningChunk'>;

/**
 * A `concatMap` over events for a consumer that may be far too slow. While it keeps up, every event passes as it is. While
 * it is busy, deltas of a message pile up; as soon as it is ready, a pile of text or thinking of at least `from` characters
 * becomes one event whose `delta` is a summary, and `project` gets the whole text as its second argument.
 *
 * Structural events are never merged, dropped or overtaken, and neither are arguments of tools, which are merged only.
 * Smaller piles are merged as by `coalesceMap`. What arrives during a summary piles up again. Completes with the last inner
 * Observable; an error of the source comes after what waits, one of an inner Observable immediately. Cold or hot, as the
 * events are.
 *
 * @example
 * ```ts
 * const digested$ = agent.stream$('What do mills do?').pipe(
 *   digestMap((event, piled) => send(event, piled), { summarise: (piled) => summary$(piled) }),
 * );
 * ```
 */
export const digestMap = <Event extends AgentEvent, Inner extends ObservableInput<unknown>>(
  /** Consumes an event. `piled` is the text that the event sums up, otherwise `undefined`. */
  project: (event: Event, piled: string | undefined) => Inner,
  options: DigestMapOptions,
): OperatorFunction<Event, ObservedValueOf<Inner>> => {
  checkOptions('digestMap()', options, rules, ['summarise']);
  const { summarise, ...limits } = options;
  const { from: least = 2_000, timeoutMs = 10_000, scheduler = asyncScheduler } = defined(limits);
  const summary$ = (event: DeltaOf): Observable<string> =>
    defer(() => summarise(event.delta, event)).pipe(
      reduce((all, part) => all + part, ''),
      timeout({ first: timeoutMs, scheduler }),
      catchError(() => of('')),
    );
  return (source) =>
    defer(() => {
      // A merged event is new.
      const passed = new WeakSet<Event>();
      const isPile = (event: Event): event is Event & DeltaOf =>
        !passed.has(event) && isText(event) && event.delta.length >= least;
      return source.pipe(
        tap((event) => passed.add(event)),
        coalesceMap((event): ObservableInput<ObservedValueOf<Inner>> => {
          const consumed = (shown: Event, piled?: string): Observable<ObservedValueOf<Inner>> =>
            from(project(shown, piled));
          if (!isPile(event)) return consumed(event);
          return summary$(event).pipe(
            map((summary) => summary.trim()),
            concatMap((summary) =>
              summary === '' || summary.length >= event.delta.length
                ? consumed(event)
                : consumed(Object.freeze({ ...event, delta: summary }), event.delta),
            ),
          );
        }),
      );
    });
};

const isText = (event: AgentEvent): event is DeltaOf =>
  (event.type === 'reasoningChunk' ||
    event.type === 'summaryChunk' ||
    event.type === 'planningChunk') &&
  (event.kind === 'text' || event.kind === 'thinking');

const rules = {
  summarise: isFunction,
  from: wholeNumber(1),
  timeoutMs: isDelay,
  scheduler: having('schedule', 'a scheduler of RxJS'),
};
