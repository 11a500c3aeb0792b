import { catchError, concatMap, defer, forkJoin, map, type Observable, of } from 'rxjs';
import { restoreAsyncContext } from '../flow/async-context.js';
import { messageOf, MillraceError } from '../values/errors.js';
import { isRecord, parsedJson } from '../values/json.js';
import { having, type Rule } from '../values/options.js';
import type { CallStoreDriver, NewRecord, StoredCall, StoredRecord } from './call-store-driver.js';
import { sessionIn } from './call-record.js';

/** How records are stored, such as encrypted. What it throws or rejects with fails the call with `invalidState`. */
export interface RecordSeal {
  /** Returns what is stored instead of the text of a record. Bind it to the id of its call. */
  readonly seal: (text: string, callId: string) => string | Promise<string>;
  /** Returns the text of what `seal` returned. Throws an error if it was changed, or is of another call. */
  readonly open: (sealed: string, callId: string) => string | Promise<string>;
}

export const isSeal: Rule = [
  (value) => having('seal', '')[0](value) && having('open', '')[0](value),
  'an object with the functions seal and open',
];

/** A driver whose records are sealed. In clear text are the ids of calls, sessions and steps, types of events, and times. */
export const sealedRecords = (
  driver: CallStoreDriver,
  { seal, open }: RecordSeal,
): CallStoreDriver => {
  const sealed = async <T extends NewRecord>(callId: string, record: T): Promise<T> => {
    const sessionId = sessionIn(callId, [record]);
    const sealedText = await seal(record.text, callId);
    const text = JSON.stringify({
      sealed: sealedText,
      ...(sessionId !== undefined && { sessionId }),
    });
    return { ...record, text };
  };
  const opened = async (callId: string, record: StoredRecord): Promise<StoredRecord> => {
    const { name } = record;
    const stored = parsedJson(record.text);
    const text = isRecord(stored) ? stored['sealed'] : undefined;
    if (typeof text !== 'string') throw unsealed(callId, name, 'it is not sealed');
    try {
      return { ...record, text: await open(text, callId) };
    } catch (cause) {
      throw unsealed(callId, name, messageOf(cause), { cause });
    }
  };
  const openedCall = ({ first, last, ...call }: StoredCall): Observable<StoredCall> =>
    first === undefined || last === undefined
      ? of(call)
      : defer(() => Promise.all([opened(call.callId, first), opened(call.callId, last)])).pipe(
          map(([begin, end]) => ({ ...call, first: begin, last: end })),
          catchError(() => of(call)),
        );
  return {
    ...driver,
    claim$: (callId) =>
      driver.claim$(callId).pipe(
        map((claim) => ({
          append$: (records) =>
            defer(() => Promise.all(records.map((record) => sealed(callId, record)))).pipe(
              concatMap((all) => claim.append$(all)),
            ),
        })),
      ),
    read$: (callId, range) =>
      driver.read$(callId, range).pipe(
        restoreAsyncContext(),
        concatMap((records) => Promise.all(records.map((it) => opened(callId, it)))),
      ),
    list$: (query) =>
      driver.list$(query).pipe(
        restoreAsyncContext(),
        concatMap((calls) => (calls.length === 0 ? of(calls) : forkJoin(calls.map(openedCall)))),
      ),
  };
};

const unsealed = (
  callId: string,
  name: string,
  why: string,
  options?: ErrorOptions,
): MillraceError =>
  new MillraceError(
    'invalidState',
    `The record '${name}' of the call '${callId}' cannot be opened: ${why}. Open the store with the 'seal' that it was written with.`,
    options,
  );
