import type { Observable, SchedulerLike } from 'rxjs';
import {
  catchError,
  concat,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  filter,
  forkJoin,
  ignoreElements,
  isEmpty,
  map,
  mergeMap,
  of,
  retry,
  scan,
  take,
  takeLast,
  tap,
  timeout,
  timer,
  toArray,
} from 'rxjs';
import { randomId } from '../seams/call-context.js';
import { isMillraceError, MillraceError } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import { sessionIn } from './call-record.js';
import type { CallStoreDriver, Claim, NewRecord, StoredRecord } from './call-store-driver.js';
import {
  broken,
  createKnownLog,
  deltasOf,
  type Fields,
  fieldsOf,
  isList,
  type KnownLog,
  lazily,
  messagesOf,
  openEnd,
  partsOf,
} from './compact-log.js';
import { parsedText, stepText } from './record-json.js';

/*
 * The calls of a session begin with the same history, and each call records it. A long one is recorded once, in the log of the session: records in the driver
 * under an id that no call may have. The `open` step of a call then holds `{ of: sessionId, parts }`, where a part is a message, or `[from, count]` of the
 * messages in the log. A log grows only while a call of its session is stored, and is removed with the last one.
 */

/** The logs of the sessions in one store. */
export interface ConversationLogs {
  /** Emits the value of an `open` step with references to the log of its session, or as it is if the log cannot be used now. The step must be recorded next. Cold. */
  readonly shared$: (sessionId: string | undefined, value: Fields) => Observable<Fields>;
  /** Emits the records with what they refer to. Cold. */
  readonly whole$: (records: readonly StoredRecord[]) => Observable<readonly StoredRecord[]>;
  /** Removes a call, and the log of its session with the last call of that. Cold. */
  readonly remove$: (callId: string) => Observable<unknown>;
}

/** What is known of a log. By its last record it is known again. */
interface Log {
  readonly position: number;
  readonly name?: string;
  readonly messages: readonly unknown[];
  /** It is about to be removed. */
  readonly isClosed: boolean;
}

const noLog: Log = { position: 0, messages: [], isClosed: false };

const reserved = '~conversation';

const logId = (sessionId: string): string => `${reserved}/${sessionId}`;

/** Is open while a log is removed or reopened, which happens one at a time. */
const removalId = (sessionId: string): string => `${reserved}-removal/${sessionId}`;

const isLogId = (id: string): boolean => id.startsWith(reserved);

export const checkCallId = (callId: string): void => {
  if (!isLogId(callId)) return;
  throw new MillraceError(
    'invalidRequest',
    `The id '${callId}' begins with '${reserved}', which is reserved. Use another id.`,
  );
};

/** Logs of which the messages are remembered. */
const mostKnown = 16;

/** How long a call waits to extend the log, in milliseconds: then it records its history itself. */
const claimMs = 250;

/** How often a removal tries to open the log. */
const mostTries = 40;

/** How many characters of new messages a call records itself: beyond that, they are added to the log. */
const mostOwn = 8_192;

export const isLongOpening = (id: string, text: string): boolean =>
  id.endsWith(openEnd) && text.length > mostOwn;

export const createConversationLogs = (
  driver: CallStoreDriver,
  scheduler: SchedulerLike,
): ConversationLogs => {
  const logs = new Map<string, Log>();
  const remember = (sessionId: string, log: Log): Log => {
    logs.delete(sessionId);
    if (log.position > 0) logs.set(sessionId, log);
    for (const oldest of logs.keys()) if (logs.size > mostKnown) logs.delete(oldest);
    return log;
  };
  const log$ = (sessionId: string): Observable<Log> =>
    defer(() => read$(driver, sessionId, logs.get(sessionId) ?? noLog)).pipe(
      map((log) => remember(sessionId, log)),
    );
  /** Emits what `work` emits first, once what it had open is closed. */
  const held$ = <T>(id: string, work: (claim: Claim) => Observable<T>): Observable<T> =>
    defer(() => {
      let made: readonly T[] = [];
      const work$ = driver.claim$(id).pipe(
        concatMap(work),
        take(1),
        tap((value) => (made = [value])),
        ignoreElements(),
      );
      return concat(
        work$,
        defer(() => made),
      );
    });
  /** Appends what `fieldsFor` gives to a log as its only writer, and emits the log. */
  const append$ = (
    sessionId: string,
    fieldsFor: (log: Log) => Fields | undefined,
  ): Observable<Log> =>
    held$(logId(sessionId), (claim) =>
      log$(sessionId).pipe(
        concatMap((log) => {
          const fields = fieldsFor(log);
          if (fields === undefined) return of(log);
          const record = newRecord(fields);
          return concat(
            claim.append$([record]).pipe(ignoreElements()),
            defer(() => of(remember(sessionId, withFields(log, record.name, fields)))),
          );
        }),
      ),
    );
  const extend$ = (sessionId: string, history: readonly unknown[], log: Log): Observable<Log> => {
    const isLong = stepText('', newIn(history, log)).length > mostOwn;
    if (!isLong && !log.isClosed) return of(log);
    // A closed log is being removed, or its removal was broken off.
    const open$ = log.isClosed
      ? held$(removalId(sessionId), () => append$(sessionId, () => ({ isClosed: false })))
      : of(log);
    const extended$ = open$.pipe(
      concatMap(() =>
        append$(sessionId, (now) => {
          const messages = newIn(history, now);
          return now.isClosed || messages.length === 0 ? undefined : { messages };
        }),
      ),
      defaultIfEmpty(log),
      timeout({ first: claimMs, scheduler }),
    );
    // Another call of the session may be writing it.
    return extended$.pipe(catchError(() => of(log)));
  };
  const hasCalls$ = (sessionId: string): Observable<boolean> =>
    driver.list$(sessionId).pipe(
      mergeMap((calls) => calls),
      isEmpty(),
      map((hasNone) => !hasNone),
    );
  /** Closes the log, and then looks for calls once more. A call is listed before it reads the log, so it either finds the log closed or is found. One removal runs at a time, so the log that it removes is the one that it closed. */
  const removeLog$ = (sessionId: string): Observable<unknown> =>
    held$(removalId(sessionId), () => {
      const close$ = append$(sessionId, () => ({ isClosed: true }));
      const open$ = append$(sessionId, () => ({ isClosed: false }));
      const removed$ = concat(
        driver.remove$(logId(sessionId)).pipe(ignoreElements()),
        defer(() => of(remember(sessionId, noLog))),
      );
      return concat(
        close$.pipe(ignoreElements()),
        defer(() => hasCalls$(sessionId)).pipe(
          concatMap((hasCalls): Observable<unknown> => (hasCalls ? open$ : removed$)),
        ),
      );
    });
  return {
    shared$: (sessionId, value) => {
      const { history } = value;
      if (sessionId === undefined || !isList(history) || history.some(isList)) return of(value);
      return log$(sessionId).pipe(
        concatMap((log) => extend$(sessionId, history, log)),
        map(({ isClosed, messages }) => {
          const parts = isClosed ? history : partsOf(history, messages);
          return parts.some(isList) ? { ...value, history: { of: sessionId, parts } } : value;
        }),
        // The call records it whole, and reports a store that fails.
        catchError(() => of(value)),
      );
    },
    whole$: (records) => {
      // A call and those below it belong to one session.
      const [sessionId] = records.flatMap((record) => sharedBy(record) ?? []);
      if (sessionId === undefined) return of(records);
      return log$(sessionId).pipe(
        catchError(ifInvalid(() => undamaged$(driver, sessionId))),
        map(({ messages }) => records.map((record) => resolved(record, messages))),
      );
    },
    remove$: (callId) =>
      driver.read$(callId, { kind: 'step' }).pipe(
        take(1),
        map((records) => sessionIn(callId, records)),
        catchError(ifInvalid(() => of(undefined))),
        defaultIfEmpty(undefined),
        concatMap((sessionId) => {
          const removed$ = driver.remove$(callId);
          if (sessionId === undefined) return removed$;
          const rest$ = defer(() => forkJoin([hasCalls$(sessionId), log$(sessionId)])).pipe(
            filter(([hasCalls, { position }]) => !hasCalls && position > 0),
            concatMap(() => removeLog$(sessionId)),
            retry({
              count: mostTries,
              delay: (error: unknown) => {
                // Another call has the log open, for a moment.
                if (isMillraceError(error) && error.code === 'conflict')
                  return timer(claimMs, scheduler);
                throw error;
              },
            }),
          );
          return concat(removed$, rest$);
        }),
      ),
  };
};

/** Reads on in a log from what is known of it, and from its start if that is gone. */
const read$ = (driver: CallStoreDriver, sessionId: string, known: Log): Observable<Log> =>
  driver.read$(logId(sessionId), { after: Math.max(0, known.position - 1) }).pipe(
    mergeMap((records) => records),
    toArray(),
    concatMap((records) => {
      if (known.position === 0) return of(records.reduce(withRecord, known));
      const [last, ...added] = records;
      return last?.name === known.name
        ? of(added.reduce(withRecord, known))
        : read$(driver, sessionId, noLog);
    }),
  );

const newRecord = (fields: Fields): NewRecord => {
  const name = randomId();
  return { kind: 'step', name, seq: 0, text: stepText(name, fields) };
};

const withRecord = (log: Log, { name, text }: NewRecord): Log => {
  const fields = parsedText('The log of a conversation', text);
  return withFields(log, name, isRecord(fields) ? fields : {});
};

const withFields = (log: Log, name: string, { messages, isClosed }: Fields): Log => ({
  position: log.position + 1,
  name,
  messages: isList(messages) ? [...log.messages, ...messages] : log.messages,
  isClosed: isClosed === true,
});

const newIn = (history: readonly unknown[], { messages }: Log): readonly unknown[] =>
  partsOf(history, messages).filter((part) => !isList(part));

/** The session whose log a record refers to. */
const sharedBy = (record: StoredRecord): string | undefined => {
  const { kind, name } = record;
  if (kind !== 'step' || !name.endsWith(openEnd)) return undefined;
  const history = fieldsOf(record)?.['history'];
  const sessionId = isRecord(history) ? history['of'] : undefined;
  return typeof sessionId === 'string' ? sessionId : undefined;
};

const resolved = (record: StoredRecord, messages: readonly unknown[]): StoredRecord => {
  if (sharedBy(record) === undefined) return record;
  const fields = fieldsOf(record);
  const history = messagesOf(fields?.['history'], messages);
  return history === undefined ? broken(record) : lazily(record, { ...fields, history });
};

/** A log as far as it can be read. */
const undamaged$ = (driver: CallStoreDriver, sessionId: string): Observable<Log> =>
  driver.read$(logId(sessionId)).pipe(
    mergeMap((records) => records),
    scan(withRecord, noLog),
    catchError(ifInvalid(() => EMPTY)),
    takeLast(1),
    defaultIfEmpty(noLog),
  );

const ifInvalid =
  <T>(instead: () => Observable<T>) =>
  (error: unknown): Observable<T> => {
    if (isMillraceError(error) && error.code === 'invalidState') return instead();
    throw error;
  };

/** Logs that are remembered while they are followed. */
const mostFollowed = 64;

/** Returns a driver that reads records as they were before they were made compact. What it writes stays as it is. Deltas that share a record have the position of that record. */
export const readable = (
  driver: CallStoreDriver,
  { whole$, remove$ }: Pick<ConversationLogs, 'whole$' | 'remove$'>,
): CallStoreDriver => {
  let followed: readonly { readonly callId: string; readonly log: KnownLog }[] = [];
  const remember = (callId: string, log: KnownLog): void => {
    const others = followed.filter(
      (it) => it.callId !== callId || it.log.position !== log.position,
    );
    followed = [{ callId, log: createKnownLog(log) }, ...others].slice(0, mostFollowed);
  };
  return {
    claim$: (callId) => driver.claim$(callId),
    changes$: (callId) => driver.changes$(callId),
    list$: (sessionId) =>
      driver.list$(sessionId).pipe(
        map((calls) => calls.filter(({ callId }) => !isLogId(callId))),
        filter((calls) => calls.length > 0),
      ),
    remove$: (callId) =>
      defer(() => {
        followed = followed.filter((it) => it.callId !== callId);
        return remove$(callId);
      }),
    read$: (callId, { kind, after = 0, afterSeq = -1 } = {}) =>
      defer(() => {
        const isKnown = (it: (typeof followed)[number]): boolean =>
          it.callId === callId && it.log.position <= after;
        const log = createKnownLog(followed.find(isKnown)?.log);
        const isIn = ({ kind: own, position, seq }: StoredRecord): boolean =>
          (kind ?? own) === own && position > after && seq > afterSeq;
        // What a record refers to may be of another kind, and come before those that are wanted.
        return driver.read$(callId, { after: log.position }).pipe(
          concatMap(whole$),
          map((records) => records.map(log.whole).flatMap(deltasOf).filter(isIn)),
          filter((records) => records.length > 0),
          tap({ complete: () => remember(callId, log) }),
        );
      }),
  };
};
