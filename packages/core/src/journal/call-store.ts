import {
  type Observable,
  type SchedulerLike,
  asyncScheduler,
  AsyncSubject,
  concatMap,
  defer,
  EMPTY,
  mergeMap,
  noop,
  reduce,
  Subject,
  Subscription,
} from 'rxjs';
import { ending, failAs, failing, lead, made$, thenMap } from '../flow/contained.js';
import { fatal, MillraceError, toMillraceError } from '../values/errors.js';
import type { AgentEvent, Listener, EventType } from '../events.js';
import { isRecord, parsedJson } from '../values/json.js';
import type {
  CallStoreDriver,
  NewRecord,
  RecordRange,
  StoredRecord,
  Claim,
  JournalStore,
  OpenJournal,
} from './call-store-driver.js';
import { eventText, isEnd, parsedText, sessionChanges, stepText } from './record-json.js';
import type { Delta, KnownLog } from './compact-log.js';
import { continues, createKnownLog, deltaRecord, deltaTypes, isDelta } from './compact-log.js';
import {
  checkCallId,
  type ConversationLogs,
  createConversationLogs,
  isLongOpening,
  readable,
} from './conversation-log.js';
import { createDemand, type Demand } from '../flow/demand.js';
import { callBegunBy, callOfStep, callStep, interruptStep, sessionIn } from './call-record.js';

/** A store of calls: the journal that agents write, and what is read of it. */
export interface CallStore extends JournalStore {
  /** Reads records whole, whatever they share in the store. Several deltas that were recorded together have one position. */
  readonly driver: CallStoreDriver;
}

/** What of a call is written down beside its steps. */
export interface CallStoreOptions {
  /** Which events are written down, beside the last one of each call and those that say what a session has become by it. Default: all. Without them, calls can be resumed, and neither followed nor played back. */
  readonly events?: (event: AgentEvent) => boolean;
  /** Times how long a delta may wait to share a record with those that continue it: up to 100 ms. Default: `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/** Makes a store of calls of what a driver keeps. */
export const createCallStore = (
  driver: CallStoreDriver,
  { events = () => true, scheduler = asyncScheduler }: CallStoreOptions = {},
): CallStore => {
  const logs = createConversationLogs(driver, scheduler);
  return {
    driver: readable(driver, logs),
    open$: (callId, run) => open$(driver, logs, callId, { events, scheduler }, run),
  };
};

const open$ = <T>(
  driver: CallStoreDriver,
  logs: ConversationLogs,
  callId: string,
  { events, scheduler }: Required<CallStoreOptions>,
  run: (journal: OpenJournal) => Observable<T>,
): Observable<T> =>
  made$(() => {
    checkCallId(callId);
    const { appender$, close$ } = openWriter(driver, callId, scheduler);
    return appender$.pipe(
      thenMap((appender) =>
        written$(driver, logs, callId).pipe(
          thenMap((written) => run(journalOf(appender, logs, callId, events, written))),
        ),
      ),
      // Before the end is delivered: a subscriber may open the record again then.
      ending(close$),
      failing(toMillraceError),
    );
  });

interface Written {
  readonly steps: Map<string, Pick<StoredRecord, 'text'>>;
  readonly log: KnownLog;
  readonly shown: Set<string>;
  readonly told: ToldBehind;
  lastSeq: number;
}

const written$ = (
  driver: CallStoreDriver,
  { whole$ }: ConversationLogs,
  callId: string,
): Observable<Written> =>
  made$(() => driver.read$(callId)).pipe(
    concatMap(whole$),
    failAs('store', 'The journal could not be read'),
    reduce<readonly StoredRecord[], Written>(
      (written, records) => {
        for (const read of records) keep(written, callId, read);
        return written;
      },
      {
        steps: new Map(),
        log: createKnownLog(),
        shown: new Set(),
        told: createDeliveredSince(),
        lastSeq: 0,
      },
    ),
  );

const keep = (written: Written, callId: string, read: StoredRecord): void => {
  const record = written.log.whole(read);
  const { kind, name, seq } = record;
  written.lastSeq = Math.max(written.lastSeq, seq);
  if (kind === 'step') {
    written.steps.set(name, record);
    written.told.add(read);
  } else if (deltaTypes.has(name)) {
    written.shown.add(stringIn(callId, record.text, 'messageId'));
  } else if (name !== 'actingChunk') {
    written.told.add(read);
  }
};

export const records$ = (
  driver: CallStoreDriver,
  callId: string,
  range?: RecordRange,
): Observable<StoredRecord> =>
  defer(() => driver.read$(callId, range)).pipe(
    failAs('store', 'The journal could not be read'),
    mergeMap((records) => records),
  );

const stringIn = (callId: string, text: string, field: string): string => {
  const event = parsedText(`An event of the call '${callId}'`, text);
  const value = isRecord(event) ? event[field] : undefined;
  return typeof value === 'string' ? value : '';
};

const journalOf = (
  { startAt, push, pushDelta, whenWritten$, demand }: Appender,
  { shared$ }: ConversationLogs,
  callId: string,
  hears: (event: AgentEvent) => boolean,
  { steps, log, shown, told, lastSeq: lastWritten }: Written,
): OpenJournal => {
  // What a step has written down is whole, whatever was shown of it.
  const cutShort = new Set([...shown].filter((id) => !steps.has(id)));
  // Of a message that was cut short, deltas may have been shown that are not recorded.
  const from = lastWritten + (cutShort.size > 0 ? mostDeltas : 0);
  let lastSeq = from;
  const begins = `${callId}/${callStep}`;
  startAt(log.position);
  // Nothing is written down of a call that has not begun: it was refused.
  let held: AgentEvent[] | undefined = steps.size === 0 ? [] : undefined;
  const writeEvent = (event: AgentEvent): void => {
    if (isDelta(event)) {
      pushDelta(event);
      return;
    }
    const { type: name, seq } = event;
    push((position) => {
      const compact = log.compact({ kind: 'event', name, position }, { ...event });
      return { kind: 'event', name, seq, text: eventText({ type: name, ...compact }) };
    });
  };
  const writeStep = (name: string, value: unknown, text: string, shared = value): void => {
    const events = held ?? [];
    const seq = held === undefined ? lastSeq : from;
    held = undefined;
    push((position) => {
      const own = isRecord(value) ? log.compact({ kind: 'step', name, position }, value) : value;
      // What the call itself has is nearer.
      const compact = own === value ? shared : own;
      return { kind: 'step', name, seq, text: compact === value ? text : stepText(name, compact) };
    });
    events.forEach(writeEvent);
  };
  const session = (): string | undefined =>
    sessionIn(callId, [{ name: begins, text: steps.get(begins)?.text ?? '' }]);
  const known = (id: string, record: Pick<StoredRecord, 'text'>): unknown => {
    try {
      return parsedText(`The record of the step '${id}' of the call '${callId}'`, record.text);
    } catch (cause) {
      // It is no failure of the tool that it may be within.
      throw fatal(toMillraceError(cause));
    }
  };
  const listener: Listener = {
    hears: true,
    next: (event) => {
      lastSeq = event.seq;
      // Whoever follows a call has to hear of its end.
      if (!hears(event) && !isEnd(event, callId) && !changesSession(event)) return;
      if (held === undefined) writeEvent(event);
      else held.push(event);
    },
  };
  return {
    demand,
    lastSeq: from,
    cutShort,
    wasTold: told.take,
    // Nothing new happens in a call that has ended: it has told all that it had to tell.
    ...(told.has(callId, 'postCall') ? { hasEnded: true } : { listener }),
    isWritten: (id) => steps.has(id),
    stepIds: () => steps.keys(),
    step$: (id, work) =>
      made$(() => {
        const written = steps.get(id);
        if (written !== undefined) return known(id, written);
        if (id.length > maxId) throw tooLong(id);
        // A store that fails stops the call before the next effect.
        return whenWritten$(work).pipe(
          thenMap((value) => {
            const text = stepText(id, value);
            const record = (shared = value): unknown => {
              steps.set(id, { text });
              writeStep(id, value, text, shared);
              return whenWritten$(() => value);
            };
            return isLongOpening(id, text) && isRecord(value)
              ? shared$(session(), value).pipe(thenMap(record))
              : record();
          }),
        );
      }),
  };
};

const changesSession = ({ type, sessionId }: AgentEvent): boolean =>
  sessionId !== undefined && sessionChanges.has(type);

const maxId = 65_536;

const tooLong = (id: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `The step '${id.slice(0, 64)}…' has an id of ${id.length} characters: ${maxId} are possible. Calls may be nested too deeply.`,
  );

interface OpenWriter {
  readonly appender$: Observable<Appender>;
  /** Lets the claim go once all is written, or cannot be. */
  readonly close$: () => Observable<unknown>;
}

const openWriter = (
  driver: CallStoreDriver,
  callId: string,
  scheduler: SchedulerLike,
): OpenWriter => {
  const appender$ = new AsyncSubject<Appender>();
  let appender: Appender | undefined;
  const claim = driver
    .claim$(callId)
    .pipe(failAs('store', 'The journal could not be opened'))
    .subscribe({
      next: (granted) => {
        appender = createAppender(granted, scheduler);
        appender$.next(appender);
        appender$.complete();
      },
      error: (cause: unknown) => {
        if (appender === undefined) appender$.error(toMillraceError(cause));
        else appender.fail(cause);
      },
    });
  return {
    appender$,
    close$: () => (appender?.whenWritten$(noop) ?? EMPTY).pipe(ending(() => claim.unsubscribe())),
  };
};

interface Appender {
  /** Sets the position of the last record that is there. Default: 0. */
  readonly startAt: (position: number) => void;
  readonly push: (make: (position: number) => NewRecord) => void;
  readonly pushDelta: (delta: Delta) => void;
  /** Does something once all that was pushed is durable. */
  readonly whenWritten$: <T>(work: () => T | Observable<T>) => Observable<T>;
  readonly fail: (cause: unknown) => void;
  readonly demand: Demand;
}

const highWaterMark = 1024;

/** How long a delta waits, in milliseconds, and with how many others. */
const deltaMs = 100;
const mostDeltas = 64;

interface Batch {
  readonly records: NewRecord[];
  readonly written$: Subject<void>;
}

const createBatch = (): Batch => ({ records: [], written$: new Subject<void>() });

const createAppender = (claim: Claim, scheduler: SchedulerLike): Appender => {
  const demand = createDemand(highWaterMark);
  let waiting = createBatch();
  let writing: Batch | undefined;
  let failure: MillraceError | undefined;
  let position = 0;
  let backlog = 0;
  let deltas: Delta[] = [];
  let latest: Delta | undefined;
  let timer: Subscription | undefined;
  const fail = (cause: unknown): void => {
    failure ??= fatal(toMillraceError(cause, 'store', 'The journal could not be written'));
    deltas = [];
    timer?.unsubscribe();
    demand.release();
    writing?.written$.error(failure);
    waiting.written$.error(failure);
  };
  const write = (): void => {
    if (writing !== undefined || waiting.records.length === 0) return;
    const { records, written$ } = (writing = waiting);
    waiting = createBatch();
    backlog = 0;
    demand.backlog(0);
    const complete = (): void => {
      writing = undefined;
      written$.next();
      written$.complete();
      write();
    };
    lead(() => claim.append$(records), { next: noop, error: fail, complete }, new Subscription());
  };
  const enqueue = (record: NewRecord, events = 1): void => {
    if (failure !== undefined) return;
    waiting.records.push(record);
    position += 1;
    backlog += events;
    if (backlog >= highWaterMark) demand.backlog(backlog);
    write();
  };
  const flush = (): void => {
    timer?.unsubscribe();
    timer = undefined;
    const [first, ...more] = deltas;
    deltas = [];
    if (first === undefined) return;
    latest = more.at(-1) ?? first;
    enqueue(deltaRecord(first, more), 1 + more.length);
  };
  return {
    demand,
    fail,
    startAt: (last) => {
      position = last;
    },
    push: (make) => {
      flush();
      latest = undefined;
      enqueue(make(position + 1));
    },
    pushDelta: (delta) => {
      const before = deltas.at(-1) ?? latest;
      const isFirst = before === undefined || !continues(before, delta);
      if (isFirst) flush();
      deltas.push(delta);
      // Whoever resumes the call must know of each message that was shown.
      const isDue = isFirst || delta.at - (latest?.at ?? delta.at) >= deltaMs;
      if (isDue || deltas.length >= mostDeltas) flush();
      else timer ??= scheduler.schedule(flush, deltaMs);
    },
    whenWritten$: (work) =>
      made$(() => {
        flush();
        if (failure !== undefined) throw failure;
        const last = waiting.records.length > 0 ? waiting : writing;
        return last === undefined ? work() : last.written$.pipe(thenMap(work));
      }),
  };
};

interface ToldBehind {
  readonly add: (record: StoredRecord) => void;
  readonly has: (callId: string, type: EventType) => boolean;
  readonly take: (callId: string, type: EventType) => boolean;
}

export const createDeliveredSince = (): ToldBehind => {
  const calls = new Map<string, Map<string, number>>();
  const of = (callId: string): Map<string, number> => {
    const told = calls.get(callId) ?? new Map<string, number>();
    calls.set(callId, told);
    return told;
  };
  const has: ToldBehind['has'] = (callId, type) => (calls.get(callId)?.get(type) ?? 0) > 0;
  return {
    add: ({ kind, name, text }) => {
      if (kind === 'step') {
        // It has no position: what was told before it stands behind the step before.
        if (name.endsWith(`/${interruptStep}`)) return;
        const begun = callBegunBy(name);
        if (begun !== undefined) of(begun);
        calls.get(callOfStep(name, calls))?.clear();
        return;
      }
      const event = parsedJson(text);
      const callId = isRecord(event) ? event['callId'] : undefined;
      if (typeof callId !== 'string') return;
      const told = of(callId);
      told.set(name, (told.get(name) ?? 0) + 1);
    },
    has,
    take: (callId, type) => {
      const isThere = has(callId, type);
      const told = calls.get(callId);
      if (isThere) told?.set(type, (told.get(type) ?? 0) - 1);
      return isThere;
    },
  };
};
