import {
  type Observable,
  type SchedulerLike,
  catchError,
  defer,
  first,
  map,
  mergeMap,
  of,
  asyncScheduler,
  EMPTY,
  filter,
  identity,
  concatMap,
  repeat,
  take,
  tap,
  toArray,
} from 'rxjs';
import { failAs } from '../flow/contained.js';
import { messageOf, MillraceError } from '../values/errors.js';
import { isEarlier } from '../seams/input.js';
import { isRecord } from '../values/json.js';
import { textOf } from '../values/message.js';
import { type CallRecord, callStep, type ForkOrigin, readCallRecord } from './call-record.js';
import {
  type CallQuery,
  type CallStoreDriver,
  type StoredCall,
  type StoredRecord,
  checkStored,
  type StoreOfCalls,
} from './call-store-driver.js';
import { isEndOfCall } from './compact-log.js';
import { isEnd, parsedText, storedEvent } from './record-json.js';
import { characterStart } from '../values/surrogates.js';
import { createFifo } from '../flow/fifo.js';
import { queuedMap } from '../operators/bounded.js';
import { records$ } from './call-store.js';
import {
  checkOptions,
  having,
  isFunction,
  isText,
  numberFrom,
  type Rule,
} from '../values/options.js';

/** The status of a stored call. `suspended` waits for a tool result; `failed` and `unfinished` can be resumed. */
export type CallStatus = 'running' | 'ended' | 'suspended' | 'failed' | 'unfinished' | 'unreadable';

export type CallSummary = ReadableCall | UnreadableCall;

interface DatedCall {
  readonly callId: string;
  /** The time of its first record, in milliseconds since the epoch; `updatedAt` is that of its last one. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface ReadableCall extends DatedCall {
  readonly status: Exclude<CallStatus, 'unreadable'>;
  readonly agent: string;
  readonly sessionId?: string;
  /** The question, up to 200 characters. */
  readonly question: string;
  /** The `reason` of its reply, or the `code` of its error. */
  readonly reason?: string;
  /** The `metadata` of its options. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly forkedFrom?: ForkOrigin;
}

/** A stored call whose first or last record is damaged, or has another format version. */
export interface UnreadableCall extends DatedCall {
  readonly status: 'unreadable';
  readonly why: string;
}

export const summaryOf = (call: StoredCall, beginning: StoredRecord | undefined): CallSummary => {
  const { callId, createdAt, updatedAt } = call;
  const dated = { callId, createdAt, updatedAt };
  try {
    const { agent, sessionId, input, options, forkedFrom } = begunIn(callId, beginning);
    const { metadata } = options;
    return Object.freeze({
      ...dated,
      ...endOf(call),
      agent,
      ...(sessionId === undefined ? {} : { sessionId }),
      question: shortText(
        input
          .filter((it) => !isEarlier(it))
          .map(textOf)
          .join(' '),
      ),
      ...(isRecord(metadata) ? { metadata } : {}),
      ...(forkedFrom === undefined ? {} : { forkedFrom }),
    });
  } catch (error) {
    return unreadableCall(call, error);
  }
};

export const unreadableCall = (
  { callId, createdAt, updatedAt }: StoredCall,
  error: unknown,
): UnreadableCall =>
  Object.freeze({ callId, createdAt, updatedAt, status: 'unreadable', why: messageOf(error) });

const begunIn = (callId: string, beginning: StoredRecord | undefined): CallRecord => {
  if (beginning === undefined) throw unreadable('It has no first record.');
  const value =
    beginning.name === `${callId}/${callStep}` ? parsedText('Its beginning', beginning.text) : {};
  return readCallRecord(callId, value);
};

const endOf = ({ callId, isOpen, last }: StoredCall): Pick<ReadableCall, 'status' | 'reason'> => {
  if (isOpen) return { status: 'running' };
  if (last === undefined) return { status: 'unfinished' };
  if (last.name === `${callId}/reply`) return repliedWith(parsedText('Its reply', last.text));
  const event = isEndOfCall(last) ? storedEvent(callId, last) : undefined;
  if (event === undefined || !isEnd(event, callId)) return { status: 'unfinished' };
  if (event.type === 'postCall') return repliedWith(event.reply);
  // An aborted call can be resumed.
  return event.type === 'error' && event.error.code !== 'aborted'
    ? { status: 'failed', reason: event.error.code }
    : { status: 'unfinished' };
};

const repliedWith = (reply: unknown): Pick<ReadableCall, 'status' | 'reason'> => {
  const reason = isRecord(reply) ? reply['reason'] : undefined;
  if (typeof reason !== 'string') throw unreadable('Its reply is invalid.');
  return { status: reason === 'suspended' ? 'suspended' : 'ended', reason };
};

const unreadable = (why: string): MillraceError => new MillraceError('invalidState', why);

const maxLength = 200;

export const shortText = (text: string): string => {
  // Only the start is searched: texts may be long.
  const line = text
    .slice(0, 4 * maxLength)
    .replaceAll(/\s+/gu, ' ')
    .trim();
  return line.length > maxLength || text.length > 4 * maxLength
    ? `${line.slice(0, characterStart(line, maxLength - 1))}…`
    : line;
};

export const textIn = (content: unknown): string =>
  Array.isArray(content)
    ? content
        .flatMap((it: unknown) => (isRecord(it) && it['type'] === 'text' ? [it['text']] : []))
        .join('')
    : '';

/**
 * Emits the calls of a store that match a query, frozen, and completes: the last written first, or of a session the last
 * begun. `isUnfinished` also lists those that run. Lazy: `take(20)` reads no more. Damaged ones are `unreadable`, with the
 * reason. Errors with `store`. Cold.
 */
export const calls$ = (store: StoreOfCalls, query: CallQuery = {}): Observable<CallSummary> => {
  checkStored('calls$()', store);
  checkOptions('calls$()', query, queryRules);
  return listed$(store.driver, query).pipe(map(([summary]) => summary));
};

const queryRules: Readonly<Record<keyof CallQuery, Rule>> = {
  sessionId: isText,
  isUnfinished: [(value) => value === true, 'true'],
  writtenUntil: numberFrom(0),
};

export const listed$ = (
  driver: CallStoreDriver,
  query: CallQuery,
): Observable<readonly [CallSummary, StoredCall]> =>
  defer(() => driver.list$(query)).pipe(
    failAs('store', 'The calls could not be listed'),
    mergeMap((calls) => calls),
    queuedMap(
      (call) =>
        beginningOf$(driver, call).pipe(
          map((beginning) => summaryOf(call, beginning)),
          catchError((error: unknown) => of(unreadableCall(call, error))),
          map((summary) => [summary, call] as const),
        ),
      createFifo<StoredCall>,
    ),
    query.isUnfinished === true ? filter(([{ status }]) => isLeft(status)) : identity,
  );

const isLeft = (status: CallStatus): boolean =>
  status === 'running' || status === 'unfinished' || status === 'unreadable';

const beginningOf$ = (
  driver: CallStoreDriver,
  { callId, first: stored }: StoredCall,
): Observable<StoredRecord | undefined> =>
  stored === undefined || isBeginning(callId, stored)
    ? of(stored)
    : records$(driver, callId, { kind: 'step' }).pipe(
        first((record) => isBeginning(callId, record), undefined),
      );

const isBeginning = (callId: string, { name }: StoredRecord): boolean =>
  name === `${callId}/${callStep}`;

export interface PruneOptions {
  /** Minimum age of the last record, in milliseconds; 0 for any. */
  readonly olderThanMs: number;
  /** The statuses to remove. Default: `['ended', 'failed', 'suspended']`. Running calls are never removed. */
  readonly status?: readonly Exclude<CallStatus, 'running'>[] | undefined;
  /** Keeps calls for which it returns true. Default: none. */
  readonly keep?: ((call: CallSummary) => boolean) | undefined;
  /** The clock. Default: `asyncScheduler`. */
  readonly scheduler?: Pick<SchedulerLike, 'now'> | undefined;
}

const statuses: readonly string[] = ['ended', 'failed', 'suspended', 'unfinished', 'unreadable'];

const pruneRules: Readonly<Record<keyof PruneOptions, Rule>> = {
  olderThanMs: numberFrom(0),
  status: [
    (value) => Array.isArray(value) && value.every((it: unknown) => statuses.some((s) => s === it)),
    `a list of ${statuses.map((status) => `'${status}'`).join(', ')}`,
  ],
  keep: isFunction,
  scheduler: having('now', 'a scheduler of RxJS'),
};

/**
 * Removes old calls with all their records, and emits the summary of each; completes after the last. Skips open calls.
 * To delete one call: `store.driver.remove$(callId)`. Errors with `store`. Cold.
 */
export const prune$ = (store: StoreOfCalls, options: PruneOptions): Observable<CallSummary> => {
  checkStored('prune$()', store);
  checkOptions('prune$()', options, pruneRules, ['olderThanMs']);
  const {
    olderThanMs,
    status: wanted = ['ended', 'failed', 'suspended'],
    keep = () => false,
    scheduler = asyncScheduler,
  } = options;
  const { driver } = store;
  const isOld = (call: CallSummary): boolean =>
    wanted.some((it) => it === call.status) && !keep(call);
  return defer(() => {
    let until = scheduler.now() - olderThanMs;
    let hasMore = false;
    return defer(() => {
      const before = until;
      return listed$(driver, { writtenUntil: until }).pipe(
        map(([call]) => call),
        tap(({ updatedAt }) => {
          until = Math.min(until, updatedAt);
        }),
        filter(isOld),
        take(mostAtOnce),
        // A list must not change while it is read.
        toArray(),
        concatMap((found) => {
          hasMore = found.length === mostAtOnce && until < before;
          return removed$(driver, found).pipe(
            tap(() => {
              hasMore ||= found.length === mostAtOnce;
            }),
          );
        }),
      );
    }).pipe(repeat({ delay: () => (hasMore ? of(true) : EMPTY) }));
  });
};

const mostAtOnce = 5_000;

const removed$ = (
  driver: CallStoreDriver,
  calls: readonly CallSummary[],
): Observable<CallSummary> => {
  if (calls.length === 0) return EMPTY;
  const known = new Map(calls.map((call) => [call.callId, call]));
  return defer(() => driver.removeAll$([...known.keys()])).pipe(
    failAs('store', 'The calls could not be removed'),
    mergeMap((removed) => removed.flatMap(({ callId }) => known.get(callId) ?? [])),
  );
};
