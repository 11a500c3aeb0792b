import { defer, filter, Observable, of, Subject } from 'rxjs';
import { MillraceError } from '../values/errors.js';
import { deferWork } from '../flow/eventual.js';
import { sessionIn } from './call-record.js';
import type { CallQuery, CallStoreDriver, RecordRange, StoredRecord } from './call-store-driver.js';

/** Stores calls in this process. `now` is the clock, in milliseconds since the epoch; default: `Date.now`. */
export const inProcessCalls = (now: () => number = Date.now): CallStoreDriver => {
  const calls = new Map<string, KeptCall>();
  const sessions = new Map<string, Map<string, KeptCall>>();
  const changed$ = new Subject<string>();
  let place = 0;
  const begun = (callId: string): KeptCall => {
    place += 1;
    const at = now();
    const dates = { createdAt: at, updatedAt: at };
    return { callId, place, ...dates, records: [], isOpen: false, hasEnded: false };
  };
  const forget = ({ callId, sessionId = '' }: KeptCall): void => {
    calls.delete(callId);
    const others = sessions.get(sessionId);
    others?.delete(callId);
    if (others?.size === 0) sessions.delete(sessionId);
  };
  return {
    claim$: (callId) =>
      new Observable((subscriber) => {
        const call = calls.get(callId) ?? begun(callId);
        if (call.isOpen) throw taken(callId);
        calls.set(callId, call);
        call.isOpen = true;
        let isHeld = true;
        subscriber.add(() => {
          isHeld = false;
          call.isOpen = false;
          if (call.records.length === 0) calls.delete(callId);
        });
        subscriber.next({
          append$: (records) =>
            deferWork(() => {
              if (!isHeld) throw taken(callId);
              for (const { ends = false, ...record } of records) {
                const position = call.records.length + 1;
                call.records.push(Object.freeze({ ...record, position }));
                call.hasEnded = ends;
              }
              const id = sessionIn(callId, records);
              if (id !== undefined) {
                sessions.set(
                  id,
                  (sessions.get(id) ?? new Map<string, KeptCall>()).set(callId, call),
                );
              }
              call.sessionId ??= id;
              call.updatedAt = now();
              changed$.next(callId);
            }),
        });
      }),
    read$: (callId, range = {}) =>
      new Observable((subscriber) => {
        const records = calls.get(callId)?.records.slice(range.after).filter(isIn(range)) ?? [];
        if (records.length > 0) subscriber.next(records);
        subscriber.complete();
      }),
    changes$: (callId) => changed$.pipe(filter((changed) => changed === callId)),
    list$: (query = {}) =>
      defer(() => {
        const { sessionId } = query;
        const listed = [
          ...(sessionId === undefined ? calls : (sessions.get(sessionId) ?? [])).values(),
        ]
          .filter(matches(query))
          .sort((a, b) =>
            sessionId === undefined ? b.updatedAt - a.updatedAt : b.place - a.place,
          );
        return [listed.map(storedCall)];
      }),
    remove$: (callId) =>
      defer((): Observable<unknown> => {
        const call = calls.get(callId);
        if (call?.isOpen === true) throw taken(callId);
        if (call !== undefined) forget(call);
        return of(undefined);
      }),
    removeAll$: (callIds) =>
      defer(() => {
        const removed = callIds.flatMap((callId) => {
          const call = calls.get(callId);
          if (call === undefined) return [{ callId }];
          if (call.isOpen) return [];
          forget(call);
          const { sessionId } = call;
          return [{ callId, ...(sessionId !== undefined && { sessionId }) }];
        });
        return of(removed);
      }),
  };
};

interface KeptCall {
  readonly callId: string;
  readonly createdAt: number;
  readonly records: StoredRecord[];
  updatedAt: number;
  isOpen: boolean;
  hasEnded: boolean;
  readonly place: number;
  sessionId?: string | undefined;
}

const matches =
  ({ isUnfinished, writtenUntil = Infinity }: CallQuery) =>
  ({ hasEnded, updatedAt }: KeptCall): boolean =>
    !(isUnfinished === true && hasEnded) && updatedAt <= writtenUntil;

const storedCall = ({ callId, place, createdAt, updatedAt, isOpen, records }: KeptCall) => ({
  ...{ callId, place, createdAt, updatedAt, isOpen },
  ...endsOf(records),
});

const isIn =
  ({ kind, afterSeq = -1 }: RecordRange) =>
  (record: StoredRecord): boolean =>
    (kind === undefined || record.kind === kind) && record.seq > afterSeq;

const endsOf = (records: readonly StoredRecord[]) => {
  const [first, last] = [records[0], records.at(-1)];
  return first === undefined || last === undefined ? {} : { first, last };
};

export const taken = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The call '${callId}' is already open: a call has one writer. Follow it with attach$(), or wait until it ends.`,
    { retryable: true },
  );
