import { fromPull, openDemand } from '@millrace/core';
import type {
  CallStoreDriver,
  RecordRange,
  StoredCall,
  StoredRecord,
} from '@millrace/core/journal';
import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  filter,
  from,
  map,
  merge,
  type Observable,
  switchMap,
  take,
  timer,
} from 'rxjs';
import { checkId, storedName } from '../stored-name.js';
import { appendHeld, type CallLeaseOptions, createCallLeases } from './call-leases.js';
import type { CallTable, PageEnd } from './call-table.js';

/** Polls in case a notification is lost. */
const pollMs = 1_000;

/** The driver of calls in a database, which opens on first use. */
export const tableCalls = (
  open: () => Promise<CallTable>,
  options: CallLeaseOptions,
): CallStoreDriver => {
  const leases = createCallLeases(open, options);
  const at$ = <T>(callId: string, work$: (key: string) => Observable<T>): Observable<T> =>
    defer(() => {
      checkId('A call', callId);
      return work$(storedName(callId));
    });
  return {
    claim$: (callId) =>
      at$(callId, (key) =>
        leases.hold$(callId, key).pipe(
          map((lease) => ({
            append$: (records) => defer(() => from(appendHeld(lease, callId, key, records))),
          })),
        ),
      ),
    read$: (callId, range = {}) =>
      at$(callId, (key) => fromPull(() => readRecords(open, key, range), openDemand)),
    changes$: (callId) =>
      at$(callId, (key) =>
        merge(
          from(open()).pipe(
            switchMap(({ notices$ }) => notices$),
            filter((topic) => topic === key || topic === ''),
            catchError(() => EMPTY),
          ),
          timer(pollMs, pollMs, options.scheduler),
        ),
      ),
    list$: (sessionId) => fromPull(() => readCalls(open, sessionId), openDemand),
    remove$: (callId) =>
      at$(callId, (key) =>
        leases.hold$(callId, key).pipe(
          concatMap(({ table, owner }) => from(table.remove(key, owner))),
          take(1),
        ),
      ),
  };
};

async function* readRecords(
  open: () => Promise<CallTable>,
  key: string,
  range: RecordRange,
): AsyncGenerator<readonly StoredRecord[]> {
  const table = await open();
  for (let from = range; ;) {
    const records = await table.read(key, from);
    const last = records.at(-1);
    if (last === undefined) return;
    yield records;
    from = { ...range, after: last.position };
  }
}

async function* readCalls(
  open: () => Promise<CallTable>,
  sessionId: string | undefined,
): AsyncGenerator<readonly StoredCall[]> {
  const table = await open();
  for (let after: PageEnd | undefined; ;) {
    const { calls, end } = await table.list(sessionId, after);
    if (end === undefined) return;
    yield calls;
    after = end;
  }
}
