import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  identity,
  ignoreElements,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
  take,
  tap,
  throwError,
} from 'rxjs';
import { contained, failAs } from '../../flow/contained.js';
import { cancellationOf, cancelledIn } from '../../memories/cancel-suspended.js';
import { waitersFor } from '../../seams/tool-context.js';
import { MillraceError, misuse } from '../../values/errors.js';
import { appended$, kept$, type Memory } from '../../values/memory.js';
import { freezeMessage } from '../../values/message.js';
import { addedSince, type MessageTree, pathTo } from '../../values/message-tree.js';
import { isText } from '../../values/options.js';
import { callsSince } from './appended-state.js';
import { readState, toState } from './read-state.js';
import type { SessionParts } from './session-layers.js';
import { watchedMemory } from './session-memory.js';
import type { Acquired, Occupant, OnBusy, SessionQueue } from './session-queue.js';
import { type SessionChange, type SessionState, stateVersion } from './session-state.js';
import { storedTree, treeOfState } from './session-tree.js';

/** A session as it is at a moment. Nothing in it changes later. */
export interface SessionSnapshot {
  readonly tree: MessageTree;
  readonly rest: Omit<SessionState, 'messages' | 'branches'>;
}

export const snapshot$ = ({ memory, record }: SessionParts): Observable<SessionSnapshot> =>
  kept$(memory).pipe(
    contained(),
    take(1),
    failAs('memory', 'The memory could not be read'),
    map((tree) => ({ tree, rest: { version: stateVersion, ...record.state } })),
  );

export const stateOf = ({ tree, rest }: SessionSnapshot): SessionState =>
  toState({ ...rest, ...storedTree(tree) });

/** The change from one snapshot to another that has all of its messages, and maybe more; `undefined` if it does not. */
export const changeSince = (
  former: SessionSnapshot,
  { tree: { entries, head }, rest }: SessionSnapshot,
): SessionChange | undefined => {
  const added = addedSince(former.tree.entries, entries);
  const calls = callsSince(former.rest, rest);
  if (added === undefined || calls === undefined) return undefined;
  const { earlierCalls: _, ...own } = rest;
  const changed = toState({ ...own, messages: added.map(({ message }) => message) });
  const { messages, ...others } = changed;
  const addedMessages = added.flatMap(({ after }, index) => {
    const message = messages[index];
    return message === undefined ? [] : [{ message, after }];
  });
  return { entries: [...addedMessages, ...calls.map((call) => ({ call }))], head, rest: others };
};

export const savedState$ = (parts: SessionParts): Observable<SessionState> =>
  snapshot$(parts).pipe(map(stateOf));

/** Replaces the whole session. Errors with `busy` while a call runs or waits. */
export const loadedState$ = (
  { id, queue, memory, record }: SessionParts,
  state: unknown,
): Observable<never> =>
  defer(() => {
    const read = readState(state);
    const load$ = concat(
      replaced$(memory, treeOfState(read)),
      defer(() => {
        record.restore(read);
        return EMPTY;
      }),
    );
    return alone$(
      queue,
      'reject',
      load$,
      catchError(() => throwError(() => busy(id))),
    );
  });

const replaced$ = (memory: Memory, { entries, head }: MessageTree): Observable<never> =>
  defer(() => {
    if (memory.replace$ === undefined) throw memoryWithoutReplace();
    const frozen = entries.map(({ message, after }) => ({
      message: freezeMessage(message),
      after,
    }));
    return memory.replace$({ entries: frozen, head });
  }).pipe(contained(), failAs('memory', 'The memory could not be written'), ignoreElements());

const busy = (sessionId: string): MillraceError =>
  new MillraceError(
    'busy',
    `The session '${sessionId}' has a running call, so its state cannot be replaced. Wait until the call has ended, or interrupt it.`,
  );

const memoryWithoutReplace = (): MillraceError =>
  new MillraceError(
    'memory',
    "The memory cannot load the messages of a state: it has no 'replace$'. Add replace$(messages), or use a memory that has it, such as inProcessMemory().",
  );

/** Gives the suspended tool calls at the head error results, and emits how many results are no longer awaited. */
export const cancelledSuspended$ = (
  { queue, memory, record }: SessionParts,
  reason = 'Cancelled before it had a result.',
): Observable<number> =>
  defer(() => {
    if (!isText[0](reason)) throw misuse('cancelSuspended() needs a string, or nothing.');
    const own = watchedMemory(memory, (change) => record.reportMessages(change));
    const cancel$ = kept$(memory).pipe(
      take(1),
      concatMap((tree) => {
        const cancellation = cancellationOf(pathTo(tree), tree.head, reason);
        if (cancellation === undefined) return of(0);
        const after = memory.branches$ === undefined ? {} : { after: tree.head };
        return appended$(own, [freezeMessage(cancellation)], after).pipe(
          map(() => cancelledIn(cancellation).length),
        );
      }),
      contained(),
      failAs('memory', 'The suspended tool calls could not be cancelled'),
    );
    return alone$(queue, 'queue', cancel$);
  });

/** Works while no call of the session runs or starts. */
const alone$ = <T>(
  queue: SessionQueue,
  onBusy: OnBusy,
  work$: Observable<T>,
  refused: MonoTypeOperatorFunction<Acquired> = identity,
): Observable<T> =>
  defer(() => {
    const occupant: Occupant = {
      callId: '',
      isAlone: true,
      input: [],
      waiters: waitersFor(undefined),
      interrupt: () => false,
    };
    const release = (): void => {
      queue.release(occupant);
      queue.startNext(occupant);
    };
    return queue.acquire$(occupant, onBusy, Infinity).pipe(
      refused,
      // A later call that switches does not undo it.
      filter((now) => now === 'started'),
      take(1),
      concatMap(() => work$),
      // Subscribers see the end when the session is free.
      tap({ complete: release, error: release, unsubscribe: release }),
    );
  });
