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
} from 'rxjs';
import { contained } from '../contained.js';
import { MillraceError, toMillraceError } from '../errors.js';
import type { AgentEvent, Listener } from '../events.js';
import { failAs } from '../fail-as.js';
import { isRecord } from '../json.js';
import type { Appender } from './appender.js';
import type { CallStoreDriver, NewRecord, RecordRange, StoredRecord } from './call-store-driver.js';
import { halting } from './halt.js';
import type { Journal, OpenJournal } from './journal.js';
import { openWriter } from './open-writer.js';
import { eventText, parsedText, stepText } from './record-json.js';
import { sessionChanges } from './session-changes.js';
import { isEnd } from './stored-event.js';
import { createToldBehind, type ToldBehind } from './told-behind.js';

/** A store of calls: the journal that agents write, and what is read of it. */
export interface CallStore extends Journal {
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
      throw halting(toMillraceError(cause));
    }
  };
  const listener: Listener = {
    hears: true,
    // A step that comes of an event stands behind it.
    isFirst: true,
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
