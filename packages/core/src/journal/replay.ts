import {
  asyncScheduler,
  catchError,
  concat,
  concatMap,
  EMPTY,
  map,
  type Observable,
  of,
  reduce,
  type SchedulerLike,
  takeWhile,
  timer,
} from 'rxjs';
import type { AgentEvent } from '../events.js';
import { checkOptions, isFunction, isScheduler, numberFrom, type Rule } from '../options.js';
import { records$ } from './call-store.js';
import type { CallStoreDriver } from './call-store-driver.js';
import { inPortions$ } from './attach.js';
import { assertStored$, checkStored, type StoreOfCalls } from './stored-call.js';
import { storedEvent } from './stored-event.js';

/** How a call is played back. */
export interface ReplayOptions {
  /** How many times as fast as it was. `Infinity`: all at once. Default: 1. */
  readonly speed?: number;
  /** The longest pause between two events as they were, in milliseconds: a longer one counts for so long. Default: Infinity. */
  readonly maxGapMs?: number;
  /** Which events are played. Default: all. */
  readonly events?: (event: AgentEvent) => boolean;
  /** What the pauses run on. Default: `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

const replayRules: Readonly<Record<keyof ReplayOptions, Rule>> = {
  speed: [(value) => typeof value === 'number' && value > 0, 'a number above 0, or Infinity'],
  maxGapMs: [
    (value) => value === Infinity || numberFrom(0)[0](value),
    'a number of milliseconds of at least 0, or Infinity',
  ],
  events: isFunction,
  scheduler: isScheduler,
};

/**
 * Plays a call back: emits its recorded events, frozen, with the pauses between them, the first immediately, and completes after the last. A pause is at most `maxGapMs`; there is none where the clock
 * went backwards. Nothing runs again, and later events are not included: see `attach$`. Reads in batches as it plays. Errors with `invalidResume` if there is no such call, and `invalidState` at an unreadable event. Cold.
 */
export const replay$ = (
  store: StoreOfCalls,
  callId: string,
  options: ReplayOptions = {},
): Observable<AgentEvent> => {
  checkStored('replay$()', store, callId);
  checkOptions('replay$()', options, replayRules);
  const { events = () => true } = options;
  const { driver } = store;
  const played$ = (last: number): Observable<AgentEvent | typeof end> => {
    const due = clockOf(options);
    return inPortions$<AgentEvent | typeof end>(driver, callId, eventsOnly, (record) => {
      if (record.position > last) return of(end);
      const event = storedEvent(callId, record);
      return events(event) ? due(event) : EMPTY;
    });
  };
  return concat(
    assertStored$(driver, callId),
    lastPosition$(driver, callId).pipe(
      concatMap(played$),
      takeWhile((event) => event !== end),
    ),
  );
};

/** What comes later is not played. */
const end = Symbol('end');

const eventsOnly = { kind: 'event' } as const;

/** The place of the last event that there is now. What cannot be read says so when it is played. */
const lastPosition$ = (driver: CallStoreDriver, callId: string): Observable<number> =>
  records$(driver, callId, eventsOnly).pipe(
    reduce((_, { position }) => position, 0),
    catchError(() => of(Infinity)),
  );

/** Tells of each event when it is due. It counts from the first one, so that pauses do not add up to more than they are. */
const clockOf = ({
  speed = 1,
  maxGapMs = Infinity,
  scheduler = asyncScheduler,
}: ReplayOptions): ((event: AgentEvent) => Observable<AgentEvent>) => {
  let before: number | undefined;
  let dueAt = scheduler.now();
  return (event) => {
    const gapMs = Math.min(Math.max(0, event.at - (before ?? event.at)), maxGapMs);
    before = event.at;
    dueAt += gapMs / speed;
    const waitMs = Math.min(dueAt - scheduler.now(), maxWaitMs);
    return waitMs > 0 ? timer(waitMs, scheduler).pipe(map(() => event)) : of(event);
  };
};

/** A longer wait would fire at once. */
const maxWaitMs = 2 ** 31 - 1;
