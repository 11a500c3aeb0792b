import { catchError, defer, first, map, mergeMap, type Observable, of } from 'rxjs';
import { messageOf, MillraceError } from '../errors.js';
import { isRecord } from '../json.js';
import { textOf } from '../message.js';
import { type CallRecord, callStep, type ForkOrigin, isCallRecord } from './call-record.js';
import type { CallStoreDriver, StoredCall, StoredRecord } from './call-store-driver.js';
import { parsedText } from './record-json.js';
import { isEnd, mayBeEnd, storedEvent } from './stored-event.js';
import { characterStart } from '../interceptors/surrogates.js';
import { failAs } from '../fail-as.js';
import { createQueue } from '../streams/queue.js';
import { queuedMap } from '../streams/queued-map.js';
import { records$ } from './call-store.js';
import { checkStored, type StoreOfCalls } from './stored-call.js';

/**
 * What became of a call: it runs; it has replied; it waits for a result; it has ended by an error; nobody runs it, and it has not ended. The last two can be resumed. Of one that is `unreadable`
 * nothing is known but its id.
 */
export type CallStatus = 'running' | 'ended' | 'suspended' | 'failed' | 'brokenOff' | 'unreadable';

/** A call that is stored, as a list shows it. */
export type CallSummary = ReadableCall | UnreadableCall;

interface DatedCall {
  readonly callId: string;
  /** Of its first and of its last record, in milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A call that is stored, and can be read as far as a list needs it. */
export interface ReadableCall extends DatedCall {
  readonly status: Exclude<CallStatus, 'unreadable'>;
  /** The name of the agent. */
  readonly agent: string;
  readonly sessionId?: string;
  /** What was asked, in at most 200 characters. */
  readonly question: string;
  /** Why it has ended: the `reason` of its reply, or the `code` of its error. */
  readonly reason?: string;
  readonly forkedFrom?: ForkOrigin;
}

/** A call that is stored, and whose first or last record is broken, or of a later version. */
export interface UnreadableCall extends DatedCall {
  readonly status: 'unreadable';
  readonly why: string;
}

/** Tells what a list shows of a call. `beginning` is its own step, the one that it began with. */
export const summaryOf = (call: StoredCall, beginning: StoredRecord | undefined): CallSummary => {
  const { callId, createdAt, updatedAt } = call;
  const dated = { callId, createdAt, updatedAt };
  try {
    const { agent, sessionId, input, forkedFrom } = begunIn(callId, beginning);
    return Object.freeze({
      ...dated,
      ...endOf(call),
      agent,
      ...(sessionId === undefined ? {} : { sessionId }),
      question: shortText(input.map(textOf).join(' ')),
      ...(forkedFrom === undefined ? {} : { forkedFrom }),
    });
  } catch (error) {
    return unreadableCall(call, error);
  }
};

/** Tells of a call that it cannot be read. */
export const unreadableCall = (
  { callId, createdAt, updatedAt }: StoredCall,
  error: unknown,
): UnreadableCall =>
  Object.freeze({ callId, createdAt, updatedAt, status: 'unreadable', why: messageOf(error) });

const begunIn = (callId: string, beginning: StoredRecord | undefined): CallRecord => {
  if (beginning === undefined) throw unreadable('Nothing is written down of its beginning.');
  const value =
    beginning.name === `${callId}/${callStep}` ? parsedText('Its beginning', beginning.text) : {};
  if (isCallRecord(value)) return value;
  throw unreadable('What is written down first is not what a call of this version begins with.');
};

const endOf = ({ callId, isOpen, last }: StoredCall): Pick<ReadableCall, 'status' | 'reason'> => {
  if (isOpen) return { status: 'running' };
  if (last === undefined) return { status: 'brokenOff' };
  if (last.name === `${callId}/reply`) return repliedWith(parsedText('Its reply', last.text));
  const event = mayBeEnd(last) ? storedEvent(callId, last) : undefined;
  if (event === undefined || !isEnd(event, callId)) return { status: 'brokenOff' };
  if (event.type === 'postCall') return repliedWith(event.reply);
  // Who has left it, or was shut down, has broken it off.
  return event.type === 'error' && event.error.code !== 'aborted'
    ? { status: 'failed', reason: event.error.code }
    : { status: 'brokenOff' };
};

const repliedWith = (reply: unknown): Pick<ReadableCall, 'status' | 'reason'> => {
  const reason = isRecord(reply) ? reply['reason'] : undefined;
  if (typeof reason !== 'string') throw unreadable('Its reply is none.');
  return { status: reason === 'suspended' ? 'suspended' : 'ended', reason };
};

const unreadable = (why: string): MillraceError => new MillraceError('invalidState', why);

/** Characters of a text that is shown in a list. */
const maxLength = 200;

/** A text on one line, shortened where it is long. */
export const shortText = (text: string): string => {
  // Only so much is looked at: a text may be a whole book.
  const line = text
    .slice(0, 4 * maxLength)
    .replaceAll(/\s+/gu, ' ')
    .trim();
  return line.length > maxLength || text.length > 4 * maxLength
    ? `${line.slice(0, characterStart(line, maxLength - 1))}…`
    : line;
};

/** The text of content blocks, as far as it is that: what comes from a store may be anything. */
export const textIn = (content: unknown): string =>
  Array.isArray(content)
    ? content
        .map((block: unknown) =>
          isRecord(block) && block['type'] === 'text' && typeof block['text'] === 'string'
            ? block['text']
            : '',
        )
        .join('')
    : '';

/** Emits the calls of a store, the last written to first, frozen, and completes: `take(20)` reads no more than that many. One that cannot be read is `unreadable`, and says why. Errors with `store`. Cold. */
export const calls$ = (store: StoreOfCalls): Observable<CallSummary> => {
  checkStored('calls$()', store);
  const { driver } = store;
  return defer(() => driver.list$()).pipe(
    failAs('store', 'The calls could not be listed'),
    mergeMap((calls) => calls),
    queuedMap(
      (call) =>
        beginningOf$(driver, call).pipe(
          map((beginning) => summaryOf(call, beginning)),
          catchError((error: unknown) => of(unreadableCall(call, error))),
        ),
      createQueue<StoredCall>,
    ),
  );
};

/** Its own step: a call that has waited for its turn has told of that before, and one may have been interrupted by then. */
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
