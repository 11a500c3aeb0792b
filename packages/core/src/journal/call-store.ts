import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  finalize,
  mergeMap,
  type Observable,
  of,
  reduce,
  take,
  throwError,
  ReplaySubject,
  first,
  ignoreElements,
  Subject,
} from 'rxjs';
import { contained } from '../contained.js';
import { fatal, MillraceError, toMillraceError } from '../errors.js';
import type { AgentEvent, Listener, EventType } from '../events.js';
import { failAs } from '../fail-as.js';
import { isRecord, parsedJson } from '../json.js';
import type {
  CallStoreDriver,
  NewRecord,
  RecordRange,
  StoredRecord,
  Claim,
} from './call-store-driver.js';
import type { JournalStore, OpenJournal } from './journal-store.js';
import { eventText, parsedText, stepText } from './record-json.js';
import { sessionChanges, isEnd } from './stored-event.js';
import { createDemand, type Demand } from '../demand.js';
import { interruptStep, callBegunBy, callOfStep } from './step-ids.js';

/** A store of calls: the journal that agents write, and what is read of it. */
export interface CallStore extends JournalStore {
  readonly driver: CallStoreDriver;
}

/** What of a call is written down beside its steps. */
export interface CallStoreOptions {
  /**
   * Which events are written down, beside the last one of each call and those that say what a session has become by it. Default: all. Without them, calls can be resumed, and neither followed nor
   * played back.
   */
  readonly events?: (event: AgentEvent) => boolean;
}

/** Makes a store of calls of what a driver keeps. */
export const createCallStore = (
  driver: CallStoreDriver,
  { events = () => true }: CallStoreOptions = {},
): CallStore => ({
  driver,
  open$: (callId, run) => open$(driver, callId, events, run),
});

const open$ = <T>(
  driver: CallStoreDriver,
  callId: string,
  hears: (event: AgentEvent) => boolean,
  run: (journal: OpenJournal) => Observable<T>,
): Observable<T> =>
  defer(() => {
    const { appender$, close } = openWriter(driver, callId);
    const closed$ = defer(() => {
      close();
      return EMPTY;
    });
    return appender$.pipe(
      take(1),
      concatMap((appender) => {
        // The reply is safe by then, and an error is what the caller should hear of.
        const rest$ = defer(() => appender.written$()).pipe(catchError(() => EMPTY));
        return concat(
          written$(driver, callId).pipe(
            concatMap((written) =>
              run(journalOf(appender, callId, hears, written)).pipe(contained()),
            ),
            catchError((cause: unknown) => concat(rest$, closed$, failed$(cause))),
          ),
          rest$,
          // Before the end is told: whoever hears of it may open it again.
          closed$,
        );
      }),
      finalize(close),
    );
  });

const failed$ = (cause: unknown): Observable<never> => throwError(() => toMillraceError(cause));

/** What a store holds of a call. */
interface Written {
  readonly steps: Map<string, string>;
  /** Messages that subscribers have seen something of. */
  readonly shown: Set<string>;
  /** Without the events that there are many of. */
  readonly told: ToldBehind;
  lastSeq: number;
}

const written$ = (driver: CallStoreDriver, callId: string): Observable<Written> =>
  records$(driver, callId).pipe(
    reduce<StoredRecord, Written>(
      (written, record) => {
        const { kind, name, seq, text } = record;
        written.lastSeq = Math.max(written.lastSeq, seq);
        if (kind === 'step') {
          written.steps.set(name, text);
          written.told.add(record);
        } else if (chunks.has(name)) {
          written.shown.add(stringIn(callId, text, 'messageId'));
        } else if (name !== 'actingChunk') {
          written.told.add(record);
        }
        return written;
      },
      { steps: new Map(), shown: new Set(), told: createToldBehind(), lastSeq: 0 },
    ),
  );

/** Reads the records of a call one by one. */
export const records$ = (
  driver: CallStoreDriver,
  callId: string,
  range?: RecordRange,
): Observable<StoredRecord> =>
  defer(() => driver.read$(callId, range)).pipe(
    failAs('store', 'The journal could not be read'),
    mergeMap((records) => records),
  );

const chunks: ReadonlySet<string> = new Set(['reasoningChunk', 'summaryChunk', 'planningChunk']);

const stringIn = (callId: string, text: string, field: string): string => {
  const event = parsedText(`An event of the call '${callId}'`, text);
  const value = isRecord(event) ? event[field] : undefined;
  return typeof value === 'string' ? value : '';
};

const journalOf = (
  { push, isIdle, written$: writing$, demand }: Appender,
  callId: string,
  hears: (event: AgentEvent) => boolean,
  { steps, shown, told, lastSeq: from }: Written,
): OpenJournal => {
  let lastSeq = from;
  /** What comes once everything is written. */
  const flushed$ = <T>(then: () => Observable<T>): Observable<T> =>
    isIdle() ? then() : concat(writing$(), defer(then));
  // Nothing is written down of a call that has not begun: it was refused.
  let held: NewRecord[] | undefined = steps.size === 0 ? [] : undefined;
  const write = (record: NewRecord): void => {
    if (held === undefined) push(record);
    else if (record.kind === 'event') held.push(record);
    else {
      const events = held;
      held = undefined;
      [{ ...record, seq: from }, ...events].forEach(push);
    }
  };
  const known = (id: string, text: string): unknown => {
    try {
      return parsedText(`The record of the step '${id}' of the call '${callId}'`, text);
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
      write({ kind: 'event', name: event.type, seq: lastSeq, text: eventText(event) });
    },
  };
  return {
    demand,
    lastSeq: from,
    // What a step has written down is whole, whatever was shown of it.
    cutShort: new Set([...shown].filter((id) => !steps.has(id))),
    wasTold: told.take,
    // Nothing new happens in a call that has ended: it has told all that it had to tell.
    ...(told.has(callId, 'postCall') ? { hasEnded: true } : { listener }),
    isWritten: (id) => steps.has(id),
    stepIds: () => steps.keys(),
    step$: (id, work) =>
      defer(() => {
        const text = steps.get(id);
        if (text !== undefined) return of(known(id, text));
        if (id.length > maxId) throw tooLong(id);
        // A store that fails stops the call before the next effect.
        return flushed$(() =>
          work().pipe(
            concatMap((value) => {
              const made = stepText(id, value);
              steps.set(id, made);
              write({ kind: 'step', name: id, seq: lastSeq, text: made });
              return flushed$(() => of(value));
            }),
          ),
        );
      }),
  };
};

/** A session that was not saved behind a call gets by them what it lacks. */
const changesSession = ({ type, sessionId }: AgentEvent): boolean =>
  sessionId !== undefined && sessionChanges.has(type);

const maxId = 65_536;

const tooLong = (id: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `The step '${id.slice(0, 64)}…' has an id of ${id.length} characters: ${maxId} are possible. Calls may be nested too deeply.`,
  );

/** Who may write down a call. */
interface OpenWriter {
  /** Emits when the call may be written, or errors where it may not. */
  readonly appender$: Observable<Appender>;
  /** Gives the right back when all is written that was pushed, also where nobody waits for it. */
  readonly close: () => void;
}

/** Takes the right to write down a call, and holds it until it is closed. */
const openWriter = (driver: CallStoreDriver, callId: string): OpenWriter => {
  const appender$ = new ReplaySubject<Appender>(1);
  let appender: Appender | undefined;
  let isClosed = false;
  const claim = driver
    .claim$(callId)
    .pipe(failAs('store', 'The journal could not be opened'))
    .subscribe({
      next: (granted) => {
        appender = createAppender(granted);
        appender$.next(appender);
      },
      error: (cause: unknown) => {
        if (appender === undefined) appender$.error(toMillraceError(cause));
        else appender.fail(cause);
      },
    });
  return {
    appender$,
    close: () => {
      if (isClosed) return;
      isClosed = true;
      const release = (): void => claim.unsubscribe();
      const rest$ = appender?.written$() ?? EMPTY;
      rest$.subscribe({ error: release, complete: release });
    },
  };
};

/** Writes records one append after the other; those that come meanwhile go together in the next. */
interface Appender {
  readonly push: (record: NewRecord) => void;
  /** Whether everything pushed is written. */
  readonly isIdle: () => boolean;
  /** Completes when everything is written that was pushed before it is subscribed to, or errors when that failed. */
  readonly written$: () => Observable<never>;
  /** Lets nothing more be written. */
  readonly fail: (cause: unknown) => void;
  /** Closed while too much waits. */
  readonly demand: Demand;
}

/** Records that may wait before the call is paused. */
const highWaterMark = 1024;

/** Makes the appender of a claim. What it has been given is written, whoever has left the call by then. */
const createAppender = (claim: Claim): Appender => {
  const demand = createDemand(highWaterMark);
  const progress$ = new Subject<number>();
  let waiting: NewRecord[] = [];
  let isWriting = false;
  let pushed = 0;
  let written = 0;
  let failure: MillraceError | undefined;
  const fail = (cause: unknown): void => {
    failure ??= fatal(toMillraceError(cause, 'store', 'The journal could not be written'));
    waiting = [];
    demand.release();
    progress$.error(failure);
  };
  const isIdle = (): boolean => failure === undefined && waiting.length === 0 && !isWriting;
  const write = (): void => {
    if (isWriting || waiting.length === 0) return;
    const batch = waiting;
    waiting = [];
    isWriting = true;
    demand.backlog(0);
    const complete = (): void => {
      isWriting = false;
      written += batch.length;
      progress$.next(written);
      write();
    };
    try {
      claim.append$(batch).subscribe({ error: fail, complete });
    } catch (cause) {
      fail(cause);
    }
  };
  return {
    demand,
    fail,
    push: (record) => {
      if (failure !== undefined) return;
      waiting.push(record);
      pushed += 1;
      if (waiting.length >= highWaterMark) demand.backlog(waiting.length);
      write();
    },
    isIdle,
    written$: () =>
      defer(() => {
        if (failure !== undefined) return throwError(() => failure);
        if (isIdle()) return EMPTY;
        const mine = pushed;
        return progress$.pipe(
          first((count) => count >= mine),
          ignoreElements(),
        );
      }),
  };
};

/** What each call of a log has told behind the last of its own steps. */
interface ToldBehind {
  /** Takes the next record of the log. */
  readonly add: (record: StoredRecord) => void;
  /** Whether a call has told an event of a type. */
  readonly has: (callId: string, type: EventType) => boolean;
  /** As `has`, but each one that was told counts once. */
  readonly take: (callId: string, type: EventType) => boolean;
}

/** Reads what the calls of a log have told. Those that run side by side have steps of their own: one of another forgets nothing. */
export const createToldBehind = (): ToldBehind => {
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
