import { concatMap, defaultIfEmpty, defer, map, type Observable, take } from 'rxjs';
import type { Fork } from '../journal/call-record.js';
import { renamed } from '../journal/forked-records.js';
import { isMessage } from '../shape.js';
import { appended$, kept$, type Memory } from '../memory.js';
import type { Message } from '../message.js';

/** A session, as far as it may be another one in a fork. */
interface ForkableSession {
  readonly id: string;
  readonly memory: Memory;
}

/**
 * Gives the session that a call below a forked one is in, instead of the one that it names: a copy of its own, `<session>~<fork>`, which begins with what that one holds but what the forked call has
 * added behind the point. What is there is never written to.
 */
export const forkedSession = <Session extends ForkableSession>(
  named: Session,
  forks: readonly Fork[],
  sessionOf: (sessionId: string) => Session,
): Session =>
  forks.reduce((original, fork) => {
    const copy = sessionOf(`${named.id}~${fork.to}`);
    return { ...copy, memory: copiedMemory(original.memory, copy.memory, fork) };
  }, named);

/** A memory that shows what another one holds until it is first written to, and then begins with that. */
const copiedMemory = (original: Memory, own: Memory, fork: Fork): Memory => {
  const isBegun$ = (): Observable<boolean> =>
    once$(kept$(own)).pipe(map(({ length }) => length > 0));
  const past$ = (messages$: Observable<readonly Message[]>): Observable<readonly Message[]> =>
    once$(messages$).pipe(map((messages) => pastOf(messages, fork)));
  const replace$ = own.replace$?.bind(own);
  return {
    load$: () =>
      defer(isBegun$).pipe(
        concatMap((isBegun) => (isBegun ? own.load$() : past$(original.load$()))),
      ),
    all$: () =>
      defer(isBegun$).pipe(concatMap((isBegun) => (isBegun ? kept$(own) : past$(kept$(original))))),
    append$: (messages) =>
      defer(isBegun$).pipe(
        concatMap((isBegun) =>
          isBegun
            ? own.append$(messages)
            : past$(kept$(original)).pipe(
                concatMap((past) => appended$(own, [...past, ...messages])),
              ),
        ),
      ),
    ...(replace$ !== undefined && { replace$ }),
  };
};

const once$ = (messages$: Observable<readonly Message[]>): Observable<readonly Message[]> =>
  messages$.pipe(take(1), defaultIfEmpty<readonly Message[], readonly Message[]>([]));

/** What of the forked call the fork has kept has the ids of the fork: where it is done once more it is not there twice. */
const pastOf = (messages: readonly Message[], { from, to, calls }: Fork): readonly Message[] =>
  messages.flatMap((message) => {
    const { id } = message;
    if (!id.startsWith(`${from}/`)) return [message];
    const isKept = calls.some((call) => id.startsWith(`${from}/${call}/`));
    const kept = isKept ? renamed(message, from, to) : undefined;
    return isMessage(kept) ? [kept] : [];
  });
