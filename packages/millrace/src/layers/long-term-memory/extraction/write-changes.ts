import type { MemoryScope } from '../long-term-memory.js';
import { concat, concatMap, ignoreElements, map, type Observable, of } from 'rxjs';
import type { Changes } from './changes.js';
import {
  type Access,
  currentFacts,
  entryOf,
  type Fact,
  forget$,
  formerEntryOf,
  formerFactsIn$,
  formerIdOf,
  historySession,
  record$,
} from './facts.js';
import { entryOfTurn, waitingScope, type WaitingTurn, waitingTurns$ } from './turns.js';

/**
 * Writes in an order in which a crash loses nothing and leaves no two values: a replaced fact enters the history and
 * leaves the facts before the new one is recorded, while the turn still waits and makes the same fact again.
 */
export const write$ = (
  access: Access,
  scope: MemoryScope,
  before: readonly Fact[],
  { current, added, updated, former }: Changes,
  maxFormer: number,
): Observable<unknown> => {
  const history = { userId: scope.userId, sessionId: historySession };
  const left = new Set(current.map(({ id }) => id));
  const moved = new Set(former.map(({ id }) => id));
  const gone = before.map(({ id }) => id).filter((id) => !left.has(id));
  const replaced = gone.filter((id) => moved.has(id));
  const forgotten = gone.filter((id) => !moved.has(id));
  const steps = [
    record$(
      access,
      history,
      former.map((fact) => formerEntryOf(fact, scope)),
    ),
    forget$(access, scope, replaced),
    forgotten.length === 0 ? of(0) : currentFacts(access).forget$(scope, forgotten),
    record$(access, scope, [...added, ...updated].map(entryOf)),
    former.length === 0 ? of(0) : trimHistory$(access, scope, history, maxFormer),
  ];
  return concat(...steps.map((step$) => step$.pipe(ignoreElements())), of(undefined));
};

const trimHistory$ = (
  access: Access,
  scope: MemoryScope,
  history: MemoryScope,
  max: number,
): Observable<number> =>
  formerFactsIn$(access, scope).pipe(
    concatMap((facts) => forget$(access, history, facts.slice(max).map(formerIdOf))),
  );

export const removeTurns$ = (
  access: Access,
  { userId }: MemoryScope,
  turns: readonly WaitingTurn[],
): Observable<unknown> =>
  forget$(
    access,
    waitingScope(userId),
    turns.map(({ entryId }) => entryId),
  );

/** Marks turns whose extraction has failed for good. Entries never change, so others take their place. */
export const park$ = (
  access: Access,
  scope: MemoryScope,
  turns: readonly WaitingTurn[],
): Observable<unknown> =>
  stillWaiting$(access, scope, turns).pipe(
    concatMap((left) => {
      const waiting = left.filter(({ isParked }) => isParked !== true);
      const parked = waiting.map(({ entryId: _, ...turn }) =>
        entryOfTurn({ ...turn, isParked: true }),
      );
      return concat(
        record$(access, waitingScope(scope.userId), parked).pipe(ignoreElements()),
        removeTurns$(access, scope, waiting),
      );
    }),
  );

/** Emits those of some turns that still wait: the user or another process may have deleted them meanwhile. */
export const stillWaiting$ = (
  access: Access,
  { userId }: MemoryScope,
  turns: readonly WaitingTurn[],
): Observable<readonly WaitingTurn[]> =>
  waitingTurns$(access, userId).pipe(
    map((waiting) => {
      const ids = new Set(waiting.map(({ entryId }) => entryId));
      return turns.filter(({ entryId }) => ids.has(entryId));
    }),
  );
