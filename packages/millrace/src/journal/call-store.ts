import {
  type Observable,
  type SchedulerLike,
  asyncScheduler,
  AsyncSubject,
  concatMap,
  defer,
  mergeMap,
  noop,
  reduce,
  Subject,
  type Subscription,
} from 'rxjs';
import { restoreAsyncContext } from '../flow/async-context.js';
import { failAs, failing } from '../flow/contained.js';
import { andThen, atOnce, continueWith, type Eventual, deferWork } from '../flow/eventual.js';
import { fatal, MillraceError, toMillraceError } from '../values/errors.js';
import type { AgentEvent, Listener, EventType } from '../events.js';
import { isRecord, parsedJson } from '../values/json.js';
import type { Complete } from '../values/options.js';
import type {
  CallStoreDriver,
  NewRecord,
  RecordRange,
  StoredRecord,
  Claim,
  JournalStore,
  OpenJournal,
} from './call-store-driver.js';
import { ending } from './draining.js';
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
import { type RecordSeal, sealedRecords } from './sealed-records.js';
import { createDemand, type Demand } from '../flow/demand.js';
import { callBegunBy, callOfStep, callStep, interruptStep, sessionIn } from './call-record.js';

export interface CallStore extends JournalStore {
  /** Reads complete records, although stored ones may share content. Deltas recorded together have one position. */
  readonly driver: CallStoreDriver;
  /** Emits the `seq` of the last durable event of a call, whenever this store has written some. Hot. Not with a filter. */
  readonly written$?: Observable<readonly [callId: string, seq: number]>;
}

export interface CallStoreOptions {
  /**
   * Filters the recorded events; the last one of each call and changes of sessions are always recorded. Default: all.
   * Calls without events can be resumed, but neither attached to nor replayed.
   */
  readonly events?: ((event: AgentEvent) => boolean) | undefined;
  /** How records are stored, such as encrypted. Default: as JSON in clear text. */
  readonly seal?: RecordSeal | undefined;
  /** The scheduler for merging deltas into one record, for up to 100 ms. Default: `asyncScheduler`. */
  readonly scheduler?: SchedulerLike | undefined;
}

/** Creates a store of calls. Refuses ids that begin with `~conversation`. Calls share a history of over 8,000 characters. */
export const createCallStore = (
  plainDriver: CallStoreDriver,
  { events, seal, scheduler = asyncScheduler }: CallStoreOptions = {},
): CallStore => {
  const driver = seal === undefined ? plainDriver : sealedRecords(plainDriver, seal);
  const logs = createConversationLogs(driver, scheduler);
  const durable$ = new Subject<readonly [string, number]>();
  return {
    driver: readable(driver, logs),
    ...(events === undefined && { written$: durable$ }),
    open$: (callId, run) =>
      open$(driver, logs, callId, { events: events ?? (() => true), scheduler, durable$ }, run),
  };
};

interface Writing {
  readonly scheduler: SchedulerLike;
  readonly durable$: Subject<readonly [callId: string, seq: number]>;
}

const open$ = <T>(
  driver: CallStoreDriver,
  logs: ConversationLogs,
  callId: string,
  { events, ...writing }: Complete<Pick<CallStoreOptions, 'events'>> & Writing,
  run: (journal: OpenJournal) => Observable<T>,
): Observable<T> =>
  defer(() => {
    checkCallId(callId);
    const { appender$, close$ } = openWriter(driver, callId, writing);
    return appender$.pipe(
      restoreAsyncContext(),
      continueWith((appender) =>
        written$(driver, logs, callId).pipe(
          continueWith((written) => run(journalOf(appender, logs, callId, events, written))),
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
  readonly delivered: DeliveredSince;
  lastSeq: number;
}

const written$ = (
  driver: CallStoreDriver,
  { whole$ }: ConversationLogs,
  callId: string,
): Observable<Written> =>
  defer(() => driver.read$(callId)).pipe(
    restoreAsyncContext(),
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
        delivered: createDeliveredSince(),
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
    written.delivered.add(read);
  } else if (deltaTypes.has(name)) {
    written.shown.add(stringIn(callId, record.text, 'messageId'));
  } else if (name !== 'actingChunk') {
    written.delivered.add(read);
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
  { startAt, push, pushDelta, whenWritten, demand }: Appender,
  { shared$ }: ConversationLogs,
  callId: string,
  hears: (event: AgentEvent) => boolean,
  { steps, log, shown, delivered, lastSeq: lastWritten }: Written,
): OpenJournal => {
  // Messages of recorded steps are complete.
  const cutShort = new Set([...shown].filter((id) => !steps.has(id)));
  // Unrecorded deltas of a partly delivered message may have been delivered.
  const from = lastWritten + (cutShort.size > 0 ? mostDeltas : 0);
  let lastSeq = from;
  const begins = `${callId}/${callStep}`;
  startAt(log.position);
  // A refused call, which never started, is not recorded.
  let held: AgentEvent[] | undefined = steps.size === 0 ? [] : undefined;
  const writeEvent = (event: AgentEvent): void => {
    if (isDelta(event)) {
      pushDelta(event);
      return;
    }
    const { type: name, seq } = event;
    const ends = endsCall(event, callId);
    push((position) => {
      const compact = log.compact({ kind: 'event', name, position }, { ...event });
      return { kind: 'event', name, seq, text: eventText({ type: name, ...compact }), ends };
    });
  };
  const writeStep = (name: string, value: unknown, text: string, shared = value): void => {
    const events = held ?? [];
    const seq = held === undefined ? lastSeq : from;
    held = undefined;
    push((position) => {
      const own = isRecord(value) ? log.compact({ kind: 'step', name, position }, value) : value;
      // References within the call come first.
      const compact = own === value ? shared : own;
      const written = compact === value ? text : stepText(name, compact);
      // Not the end, even of a reply: its last event follows, and a store writes each end in its indexes.
      return { kind: 'step', name, seq, text: written };
    });
    events.forEach(writeEvent);
  };
  const session = (): string | undefined =>
    sessionIn(callId, [{ name: begins, text: steps.get(begins)?.text ?? '' }]);
  const known = (id: string, record: Pick<StoredRecord, 'text'>): unknown => {
    try {
      return parsedText(`The record of the step '${id}' of the call '${callId}'`, record.text);
    } catch (cause) {
      // Fatal: not an error of the tool that this step may belong to.
      throw fatal(toMillraceError(cause));
    }
  };
  const listener: Listener = {
    hears: () => true,
    next: (event) => {
      lastSeq = event.seq;
      // Attached observers need the end of the call.
      if (!hears(event) && !isEnd(event, callId) && !changesSession(event)) return;
      if (held === undefined) writeEvent(event);
      else held.push(event);
    },
  };
  return {
    demand,
    lastSeq: from,
    cutShort,
    wasDelivered: delivered.take,
    // An ended call has delivered all its events.
    ...(delivered.has(callId, 'postCall') ? { hasEnded: true } : { listener }),
    isWritten: (id) => steps.has(id),
    stepIds: () => steps.keys(),
    step$: (id, work) =>
      deferWork(() => {
        const written = steps.get(id);
        if (written !== undefined) return known(id, written);
        if (id.length > maxId) throw tooLong(id);
        // A failing store stops the call before the next effect.
        return andThen(
          whenWritten(() => atOnce(work())),
          (value) => {
            const text = stepText(id, value);
            const record = (shared = value): Eventual<unknown> => {
              steps.set(id, { text });
              writeStep(id, value, text, shared);
              return whenWritten(() => value);
            };
            return isLongOpening(id, text) && isRecord(value)
              ? andThen(shared$(session(), value), record)
              : record();
          },
        );
      }),
  };
};

/** An aborted call waits for its resume. */
const endsCall = (event: AgentEvent, callId: string): boolean =>
  isEnd(event, callId) && !(event.type === 'error' && event.error.code === 'aborted');

const changesSession = ({ type, sessionId }: AgentEvent): boolean =>
  sessionId !== undefined && sessionChanges.has(type);

const maxId = 65_536;

const tooLong = (id: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `The step '${id.slice(0, 64)}…' has an id of ${id.length} characters; the maximum is ${maxId}. Calls may be nested too deeply.`,
  );

/** `close$` releases the claim after all records are written, or cannot be. */
const openWriter = (driver: CallStoreDriver, callId: string, { scheduler, durable$ }: Writing) => {
  const appender$ = new AsyncSubject<Appender>();
  let appender: Appender | undefined;
  const claim = driver
    .claim$(callId)
    .pipe(failAs('store', 'The journal could not be opened'))
    .subscribe({
      next: (granted) => {
        appender = createAppender(granted, scheduler, (seq) => durable$.next([callId, seq]));
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
    close$: () =>
      deferWork(() => appender?.whenWritten(noop)).pipe(ending(() => claim.unsubscribe())),
  };
};

interface Appender {
  /** Sets the position of the last existing record. Default: 0. */
  readonly startAt: (position: number) => void;
  readonly push: (make: (position: number) => NewRecord) => void;
  readonly pushDelta: (delta: Delta) => void;
  /** Runs work after everything pushed so far is durable. */
  readonly whenWritten: <T>(work: () => Eventual<T>) => Eventual<T>;
  readonly fail: (cause: unknown) => void;
  readonly demand: Demand;
}

const highWaterMark = 1024;

/** Maximum time a delta waits, in milliseconds, and maximum number of merged deltas. */
const deltaMs = 100;
const mostDeltas = 64;

type Wrote = (seq: number) => void;

const createBatch = () => ({ records: new Array<NewRecord>(), written$: new Subject<void>() });

const createAppender = (claim: Claim, scheduler: SchedulerLike, wrote: Wrote): Appender => {
  const demand = createDemand(highWaterMark);
  let waiting = createBatch();
  let writing: ReturnType<typeof createBatch> | undefined;
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
    const { records, written$: batchWritten$ } = (writing = waiting);
    waiting = createBatch();
    backlog = 0;
    demand.backlog(0);
    const complete = (): void => {
      writing = undefined;
      wrote(records.at(-1)?.seq ?? 0);
      batchWritten$.next();
      batchWritten$.complete();
      write();
    };
    deferWork(() => claim.append$(records)).subscribe({ error: fail, complete });
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
      // A resume must know each message that was partly delivered.
      const isDue = isFirst || delta.at - (latest?.at ?? delta.at) >= deltaMs;
      if (isDue || deltas.length >= mostDeltas) flush();
      else timer ??= scheduler.schedule(flush, deltaMs);
    },
    whenWritten: (work) => {
      flush();
      if (failure !== undefined) throw failure;
      const last = waiting.records.length > 0 ? waiting : writing;
      return last === undefined ? work() : andThen(last.written$.pipe(restoreAsyncContext()), work);
    },
  };
};

interface DeliveredSince {
  readonly add: (record: StoredRecord) => void;
  readonly has: (callId: string, type: EventType) => boolean;
  readonly take: (callId: string, type: EventType) => boolean;
}

export const createDeliveredSince = (): DeliveredSince => {
  const calls = new Map<string, Map<string, number>>();
  const of = (callId: string): Map<string, number> => {
    const delivered = calls.get(callId) ?? new Map<string, number>();
    calls.set(callId, delivered);
    return delivered;
  };
  const has: DeliveredSince['has'] = (callId, type) => (calls.get(callId)?.get(type) ?? 0) > 0;
  return {
    add: ({ kind, name, text }) => {
      if (kind === 'step') {
        // It has no position: events before it belong to the previous step.
        if (name.endsWith(`/${interruptStep}`)) return;
        const begun = callBegunBy(name);
        if (begun !== undefined) of(begun);
        calls.get(callOfStep(name, calls))?.clear();
        return;
      }
      const event = parsedJson(text);
      const callId = isRecord(event) ? event['callId'] : undefined;
      if (typeof callId !== 'string') return;
      const delivered = of(callId);
      delivered.set(name, (delivered.get(name) ?? 0) + 1);
    },
    has,
    take: (callId, type) => {
      const isThere = has(callId, type);
      const delivered = calls.get(callId);
      if (isThere) delivered?.set(type, (delivered.get(type) ?? 0) - 1);
      return isThere;
    },
  };
};
