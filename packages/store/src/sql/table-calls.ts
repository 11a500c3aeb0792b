import { fromPull, openDemand } from 'millrace';
import type {
  CallQuery,
  CallStoreDriver,
  RecordRange,
  RemovedCall,
  StoredCall,
  StoredRecord,
} from 'millrace/journal';
import {
  bufferCount,
  catchError,
  concatMap,
  defer,
  EMPTY,
  filter,
  finalize,
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
import { abortable$ } from './sql.js';

/** Polls in case a notification is lost. */
const pollMs = 1_000;

/** The driver of calls in a database, which opens on first use. */
export const tableCalls = (
  open: (signal?: AbortSignal) => Promise<CallTable>,
  options: CallLeaseOptions,
): CallStoreDriver => {
  const leases = createCallLeases(open, options);
  const at$ = <T>(callId: string, work$: (key: string) => Observable<T>): Observable<T> =>
    defer(() => {
      checkId('A call', callId);
      return work$(storedName(callId));
    });
  const remove$ = (callId: string): Observable<unknown> =>
    at$(callId, (key) =>
      leases.hold$(callId, key).pipe(
        concatMap(({ table, owner }) => from(table.remove(key, owner))),
        take(1),
      ),
    );
  return {
    claim$: (callId) =>
      at$(callId, (key) =>
        leases.hold$(callId, key).pipe(
          map((lease) => ({
            append$: (records) =>
              abortable$((signal) => appendHeld(lease, callId, key, records, signal)),
          })),
        ),
      ),
    read$: (callId, range = {}) =>
      at$(callId, (key) => pulled$((signal) => readRecords(open(signal), key, range, signal))),
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
    list$: (query = {}) => pulled$((signal) => readCalls(open(signal), query, signal)),
    remove$,
    removeAll$: (callIds) =>
      defer(() => open()).pipe(
        switchMap((table) =>
          from(callIds).pipe(
            bufferCount(removedAtOnce),
            concatMap((ids) => removeIds(table, ids)),
          ),
        ),
      ),
  };
};

/** Pulls pages as long as it is subscribed to. */
const pulled$ = <T>(pages: (signal: AbortSignal) => AsyncGenerator<T>): Observable<T> =>
  defer(() => {
    const left = new AbortController();
    return fromPull(() => pages(left.signal), openDemand).pipe(finalize(() => left.abort()));
  });

async function* readRecords(
  opened: Promise<CallTable>,
  key: string,
  range: RecordRange,
  signal: AbortSignal,
): AsyncGenerator<readonly StoredRecord[]> {
  const table = await opened;
  for (let start = range; ;) {
    const records = await table.read(key, start, signal);
    const last = records.at(-1);
    if (last === undefined) return;
    yield records;
    start = { ...range, after: last.position };
  }
}

async function* readCalls(
  opened: Promise<CallTable>,
  query: CallQuery,
  signal: AbortSignal,
): AsyncGenerator<readonly StoredCall[]> {
  const table = await opened;
  for (let after: PageEnd | undefined; ;) {
    const { calls, end } = await table.list(query, after, signal);
    if (end === undefined) return;
    yield calls;
    after = end;
  }
}

/** The number of calls that one operation removes, for which others wait. */
const removedAtOnce = 500;

const removeIds = async (
  table: CallTable,
  callIds: readonly string[],
): Promise<readonly RemovedCall[]> => {
  const byKey = new Map(callIds.map((callId) => [storedName(callId), callId]));
  const removed = await table.removeAll([...byKey.keys()]);
  return removed.flatMap(({ key, ...rest }) => {
    const callId = byKey.get(key);
    return callId === undefined ? [] : [{ callId, ...rest }];
  });
};
