import { type AgentEvent, isEvent, isMillraceError, MillraceError, type Reply } from 'millrace';
import { attach$ } from 'millrace/journal';
import { longestDelayMs } from 'millrace/values';
import type { DatabaseStore } from '@millrace/store/postgres';
import {
  concat,
  concatMap,
  defer,
  EMPTY,
  exhaustMap,
  filter,
  first,
  ignoreElements,
  map,
  merge,
  type Observable,
  race,
  reduce,
  scan,
  share,
  take,
  takeUntil,
  tap,
  throwIfEmpty,
  timer,
} from 'rxjs';
import type { EngineCall } from './database.js';
import { unknownCall } from './errors.js';

export interface Following {
  readonly store: DatabaseStore;
  readonly isOver$: (callId: string) => Observable<boolean | undefined>;
  readonly find$: (callId: string) => Observable<EngineCall | undefined>;
}

/** How often to look whether a call stopped without a last event, in milliseconds. */
const watchMs = 1_000;

/** The last event may come a moment later. */
const looksAtAnEnd = 2;

/** How often to look whether a call that failed is over, in milliseconds. */
const endMs = 200;

/** Follows a call from its queue to its end. After an `error` event, continues if the call does. */
export const follow$ = (
  following: Following,
  callId: string,
  afterSeq: number,
): Observable<AgentEvent> => {
  const { store, isOver$, find$ } = following;
  return defer(() => {
    let seq = afterSeq;
    const events$ = eventsFrom$(following, callId, afterSeq).pipe(
      tap((event) => {
        seq = event.seq;
      }),
      share(),
    );
    const stopped$ = timer(0, watchMs).pipe(
      exhaustMap(() => isOver$(callId)),
      concatMap((isOver) => (isOver === undefined ? unlessStored$(store, callId) : [isOver])),
      scan((looks, isOver) => (isOver ? looks + 1 : 0), 0),
      filter((looks) => looks >= looksAtAnEnd),
      // The follower may be slow.
      exhaustMap(() => hasMore$(store, callId, seq)),
      filter((hasMore) => !hasMore),
      exhaustMap(() => find$(callId)),
      map((call): never => {
        throw stopped(callId, call);
      }),
    );
    const isReply = ({ callId: its, type }: AgentEvent): boolean =>
      its === callId && type === 'postCall';
    const ended$ = events$.pipe(first(isReply, true));
    return merge(events$, stopped$.pipe(takeUntil(ended$)));
  });
};

/** Whether the log has events that were not emitted. */
const hasMore$ = (
  { calls }: DatabaseStore,
  callId: string,
  afterSeq: number,
): Observable<boolean> =>
  calls.driver.read$(callId, { kind: 'event', afterSeq }).pipe(
    map(({ length }) => length > 0),
    first(Boolean, false),
  );

const eventsFrom$ = (
  following: Following,
  callId: string,
  afterSeq: number,
): Observable<AgentEvent> =>
  defer(() => {
    let seq = afterSeq;
    let isReplied = false;
    return concat(
      attach$(following.store.calls, callId, { waitMs: longestDelayMs, afterSeq }).pipe(
        tap((event) => {
          seq = event.seq;
          isReplied = event.callId === callId && event.type === 'postCall';
        }),
      ),
      defer(() => (isReplied ? EMPTY : afterError$(following, callId, seq))),
    );
  });

/** Events of a call that is resumed after an error, or nothing if it is over. */
const afterError$ = (following: Following, callId: string, seq: number): Observable<AgentEvent> => {
  const { store, isOver$ } = following;
  const over$ = timer(0, endMs).pipe(
    exhaustMap(() => isOver$(callId)),
    first((isOver) => isOver !== false),
    // It may have continued, and ended again, meanwhile.
    concatMap(() => hasMore$(store, callId, seq)),
    concatMap((isMore) => (isMore ? eventsFrom$(following, callId, seq) : EMPTY)),
  );
  return race(eventsFrom$(following, callId, seq), over$);
};

/** Emits the reply of a call, or errors as it does. */
export const replyOf$ = (following: Following, callId: string): Observable<Reply> =>
  follow$(following, callId, 0).pipe(
    reduce<AgentEvent, Reply | MillraceError | undefined>((before, event) => {
      if (event.callId !== callId) return before;
      if (isEvent(event, 'postCall')) return event.reply;
      return isEvent(event, 'error') ? event.error : before;
    }, undefined),
    map((end) => {
      if (end === undefined) throw noReply(callId);
      if (isMillraceError(end)) throw end;
      return end;
    }),
  );

/** A call that was recorded without the engine can be followed, too. */
const unlessStored$ = ({ calls }: DatabaseStore, callId: string): Observable<never> =>
  calls.driver.read$(callId).pipe(
    take(1),
    throwIfEmpty(() => unknownCall(callId)),
    ignoreElements(),
  );

const stopped = (callId: string, call: EngineCall | undefined): MillraceError => {
  const why = call?.failure === undefined ? '' : ` ${call.failure}`;
  const how = `Continue it with resume$('${callId}').`;
  switch (call?.status) {
    case 'CANCELLED':
      return new MillraceError('aborted', `The call '${callId}' was aborted. ${how}`);
    case 'MAX_RECOVERY_ATTEMPTS_EXCEEDED':
      return new MillraceError(
        'aborted',
        `The call '${callId}' was given up: too many workers died while they ran it. ${how}`,
      );
    default:
      return new MillraceError('aborted', `The call '${callId}' failed without an event.${why}`);
  }
};

const noReply = (callId: string): MillraceError =>
  new MillraceError('invalidState', `The log of the call '${callId}' has no reply.`);
