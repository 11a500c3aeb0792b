import type { Observable, SchedulerLike } from 'rxjs';
import {
  catchError,
  concat,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  filter,
  from,
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
import { randomId } from '../seams/call-scope.js';
import { isMillraceError, MillraceError } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import { checkFormat } from '../values/stored-format.js';
import { checkFirstRecord, sessionIn } from './call-record.js';
import type {
  CallStoreDriver,
  Claim,
  NewRecord,
  RemovedCall,
  StoredRecord,
} from './call-store-driver.js';
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
 * under an id that no call may have. The `open` step of a call then holds `{ of: sessionId, parts }`, a part being a message, or `[from, count]` of the
 * messages in the log. A log grows only while a call of its session is stored, and is removed with the last one.
 */

export interface ConversationLogs {
  /** Emits an `open` step with references to its session's log, if available. It must be recorded next. Cold. */
  readonly shared$: (sessionId: string | undefined, value: Fields) => Observable<Fields>;
  /** Resolves the references of records. Cold. */
  readonly whole$: (records: readonly StoredRecord[]) => Observable<readonly StoredRecord[]>;
  /** Removes a call, and with the last call of a session also its log. Cold. */
  readonly remove$: (callId: string) => Observable<unknown>;
  /** Removes calls that are not open, and with the last calls of sessions also their logs. Cold. */
  readonly removeAll$: (callIds: readonly string[]) => Observable<readonly RemovedCall[]>;
}

interface Log {
  readonly position: number;
  readonly name?: string;
  readonly messages: readonly unknown[];
  readonly isClosed: boolean;
}

const noLog: Log = { position: 0, messages: [], isClosed: false };

const reserved = '~conversation';

const logId = (sessionId: string): string => `${reserved}/${sessionId}`;

const removalId = (sessionId: string): string => `${reserved}-removal/${sessionId}`;

const isLogId = (id: string): boolean => id.startsWith(reserved);

export const checkCallId = (callId: string): void => {
  if (!isLogId(callId)) return;
  throw new MillraceError(
    'invalidRequest',
    `The id '${callId}' starts with '${reserved}', which is reserved. Use another id.`,
  );
};

/** Number of logs whose messages are cached. */
const mostKnown = 16;

/** Maximum time a call waits for the log, in milliseconds; then it records its history itself. */
const claimMs = 250;

const mostTries = 40;

/** Maximum number of logs that are looked for at a time, to remove them. */
const mostRemoved = 8;

/** Maximum number of characters of new messages that a call records itself; longer ones are added to the log. */
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
  /** Emits the first value of `work` after its claim is released. */
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
  /** Appends the result of `fieldsFor` to a log, as its only writer, and emits the log. */
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
    // A closed log is being removed, or its removal did not finish.
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
    driver.list$({ sessionId }).pipe(
      mergeMap((calls) => calls),
      isEmpty(),
      map((hasNone) => !hasNone),
    );
  /**
   * Closes the log, then checks for calls again. A call is listed before it reads the log, so either it sees the
   * closed log, or the check sees the call. One removal runs at a time, so it removes the log that it closed.
   */
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
  /** Removes the log of a session without calls. */
  const removeUnused$ = (sessionId: string): Observable<never> =>
    defer(() => log$(sessionId)).pipe(
      filter(({ position }) => position > 0),
      concatMap(() => hasCalls$(sessionId)),
      filter((hasCalls) => !hasCalls),
      concatMap(() => removeLog$(sessionId)),
      retry({
        count: mostTries,
        delay: (error: unknown) => {
          // Another call has the log open.
          if (isMillraceError(error) && error.code === 'conflict') return timer(claimMs, scheduler);
          throw error;
        },
      }),
      ignoreElements(),
    );
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
        // The call records its history itself, and reports a failing store.
        catchError(() => of(value)),
      );
    },
    whole$: (records) => {
      // A call and its sub-agents belong to one session.
      const [sessionId] = records.flatMap((record) => sharedBy(record) ?? []);
      if (sessionId === undefined) return of(records);
      const resolved$ = (loaded$: Observable<Log>, why?: string) =>
        loaded$.pipe(
          map(({ messages }) => records.map((record) => resolved(record, messages, why))),
        );
      return resolved$(log$(sessionId)).pipe(
        catchError(ifInvalid(({ message }) => resolved$(undamaged$(driver, sessionId), message))),
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
          return sessionId === undefined ? removed$ : concat(removed$, removeUnused$(sessionId));
        }),
      ),
    removeAll$: (callIds) =>
      driver.removeAll$(callIds).pipe(
        concatMap((removed) => {
          const sessionIds = new Set(removed.flatMap(({ sessionId }) => sessionId ?? []));
          return concat(from(sessionIds).pipe(mergeMap(removeUnused$, mostRemoved)), of(removed));
        }),
      ),
  };
};

/** Reads a log from its known part on, or from its start if that changed. */
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
  const text = stepText(name, { version: logVersion, ...fields });
  // A log is not a call that can be continued.
  return { kind: 'step', name, seq: 0, text, ends: true };
};

/** The version of the format of logs, the only one that is read. */
const logVersion = 1;

const withRecord = (log: Log, { name, text }: NewRecord): Log => {
  const what = 'The log of a conversation';
  const value = parsedText(what, text);
  const { version, ...fields } = isRecord(value) ? value : {};
  checkFormat(what, version, logVersion);
  return withFields(log, name, fields);
};

const withFields = (log: Log, name: string, { messages, isClosed }: Fields): Log => ({
  position: log.position + 1,
  name,
  messages: isList(messages) ? [...log.messages, ...messages] : log.messages,
  isClosed: isClosed === true,
});

const newIn = (history: readonly unknown[], { messages }: Log): readonly unknown[] =>
  partsOf(history, messages).filter((part) => !isList(part));

const sharedBy = (record: StoredRecord): string | undefined => {
  const { kind, name } = record;
  if (kind !== 'step' || !name.endsWith(openEnd)) return undefined;
  const history = fieldsOf(record)?.['history'];
  const sessionId = isRecord(history) ? history['of'] : undefined;
  return typeof sessionId === 'string' ? sessionId : undefined;
};

const resolved = (
  record: StoredRecord,
  messages: readonly unknown[],
  why?: string,
): StoredRecord => {
  if (sharedBy(record) === undefined) return record;
  const fields = fieldsOf(record);
  const history = messagesOf(fields?.['history'], messages);
  return history === undefined ? broken(record, why) : lazily(record, { ...fields, history });
};

const undamaged$ = (driver: CallStoreDriver, sessionId: string): Observable<Log> =>
  driver.read$(logId(sessionId)).pipe(
    mergeMap((records) => records),
    scan(withRecord, noLog),
    catchError(ifInvalid(() => EMPTY)),
    takeLast(1),
    defaultIfEmpty(noLog),
  );

const ifInvalid =
  <T>(instead: (error: MillraceError) => Observable<T>) =>
  (error: unknown): Observable<T> => {
    if (isMillraceError(error) && error.code === 'invalidState') return instead(error);
    throw error;
  };

/** Number of logs cached while they are attached to. */
const mostFollowed = 64;

/** Returns a driver that reads complete records, and writes unchanged ones. Merged deltas have their record's position. */
export const readable = (
  driver: CallStoreDriver,
  { whole$, remove$, removeAll$ }: Pick<ConversationLogs, 'whole$' | 'remove$' | 'removeAll$'>,
): CallStoreDriver => {
  let followed: readonly { readonly callId: string; readonly log: KnownLog }[] = [];
  const forget = (callIds: readonly string[]): void => {
    const removed = new Set(callIds);
    followed = followed.filter(({ callId }) => !removed.has(callId));
  };
  const remember = (callId: string, log: KnownLog): void => {
    const others = followed.filter(
      (it) => it.callId !== callId || it.log.position !== log.position,
    );
    followed = [{ callId, log: createKnownLog(log) }, ...others].slice(0, mostFollowed);
  };
  return {
    claim$: (callId) => driver.claim$(callId),
    changes$: (callId) => driver.changes$(callId),
    list$: (query) =>
      driver.list$(query).pipe(
        map((calls) => calls.filter(({ callId }) => !isLogId(callId))),
        filter((calls) => calls.length > 0),
      ),
    remove$: (callId) =>
      defer(() => {
        forget([callId]);
        return remove$(callId);
      }),
    removeAll$: (callIds) =>
      defer(() => {
        forget(callIds);
        return removeAll$(callIds);
      }),
    read$: (callId, { kind, after = 0, afterSeq = -1 } = {}) =>
      defer(() => {
        const isKnown = (it: (typeof followed)[number]): boolean =>
          it.callId === callId && it.log.position <= after;
        const log = createKnownLog(followed.find(isKnown)?.log);
        const isIn = ({ kind: own, position, seq }: StoredRecord): boolean =>
          (kind ?? own) === own && position > after && seq > afterSeq;
        // A record may refer to earlier ones of another kind.
        return driver.read$(callId, { after: log.position }).pipe(
          tap((records) => records.forEach((record) => checkFirstRecord(callId, record))),
          concatMap(whole$),
          map((records) => records.map(log.whole).flatMap(deltasOf).filter(isIn)),
          filter((records) => records.length > 0),
          tap({ complete: () => remember(callId, log) }),
        );
      }),
  };
};
