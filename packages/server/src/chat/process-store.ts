import { type CallStore, createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions, type SessionStore } from 'millrace/sessions';
import { EMPTY, map, type Observable, tap } from 'rxjs';

/** The conversations and calls of a server without a store. */
export interface ProcessStore {
  readonly calls: CallStore;
  readonly sessions: SessionStore;
  /** The approximate memory usage. */
  readonly bytes: number;
  /** The sessions, the one that was used least recently first. */
  readonly ids: () => Iterable<string>;
  /** Marks a session as used. */
  readonly use: (sessionId: string) => void;
}

export const createProcessStore = (): ProcessStore => {
  const calls = createSizes();
  const sessions = createSizes();
  return {
    calls: createCallStore(measuredCalls(calls)),
    sessions: measuredSessions(sessions),
    get bytes() {
      return calls.total + sessions.total;
    },
    ids: sessions.ids,
    use: (sessionId) => {
      sessions.use(sessionId);
    },
  };
};

/** Sizes by id, those that were used least recently first. */
interface Sizes {
  readonly total: number;
  readonly ids: () => Iterable<string>;
  use(id: string, added?: number): void;
  remove(id: string): void;
}

const createSizes = (): Sizes => {
  const sizes = new Map<string, number>();
  let total = 0;
  const remove = (id: string): void => {
    total -= sizes.get(id) ?? 0;
    sizes.delete(id);
  };
  return {
    get total() {
      return total;
    },
    ids: () => sizes.keys(),
    use: (id, added) => {
      const size = sizes.get(id) ?? (added === undefined ? undefined : 0);
      if (size === undefined) return;
      remove(id);
      sizes.set(id, size + (added ?? 0));
      total += size + (added ?? 0);
    },
    remove,
  };
};

/** The overhead of a record in addition to its text. */
const recordBytes = 200;

const measuredCalls = (sizes: Sizes): ReturnType<typeof inProcessCalls> => {
  const driver = inProcessCalls();
  return {
    ...driver,
    claim$: (callId) =>
      driver.claim$(callId).pipe(
        map((claim) => ({
          append$: (records) =>
            claim.append$(records).pipe(
              tap({
                complete: () => {
                  const added = records.reduce((sum, { text }) => sum + text.length, 0);
                  sizes.use(callId, added + records.length * recordBytes);
                },
              }),
            ),
        })),
      ),
    remove$: (callId) =>
      driver.remove$(callId).pipe(
        tap({
          complete: () => {
            sizes.remove(callId);
          },
        }),
      ),
    removeAll$: (callIds) =>
      driver.removeAll$(callIds).pipe(
        tap((removed) => {
          for (const { callId } of removed) sizes.remove(callId);
        }),
      ),
  };
};

const measuredSessions = (sizes: Sizes): SessionStore => {
  const store = inProcessSessions();
  const measured = (
    saved$: Observable<number>,
    sessionId: string,
    added: unknown,
    isWhole: boolean,
  ): Observable<number> =>
    saved$.pipe(
      tap(() => {
        if (isWhole) sizes.remove(sessionId);
        sizes.use(sessionId, JSON.stringify(added).length);
      }),
    );
  return {
    ...store,
    save$: (sessionId, state, version) =>
      measured(store.save$(sessionId, state, version), sessionId, state, true),
    append$: (sessionId, change, version) =>
      measured(
        store.append$?.(sessionId, change, version) ?? EMPTY,
        sessionId,
        change.entries,
        false,
      ),
    remove$: (sessionId) =>
      store.remove$(sessionId).pipe(
        tap(() => {
          sizes.remove(sessionId);
        }),
      ),
  };
};
