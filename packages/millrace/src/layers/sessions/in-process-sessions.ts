import { defer, type Observable, of } from 'rxjs';
import { copied } from '../../values/message.js';
import { appendedState } from './appended-state.js';
import {
  checkSessionQuery,
  pageOf,
  searchTextOf,
  type SessionSummary,
  titleOf,
} from './find-sessions.js';
import { type SessionChange, sessionConflict, type SessionStore } from './session-state.js';

/** A session as it was saved, and what was appended since. */
interface Stored extends SessionSummary {
  readonly version: number;
  readonly state: unknown;
  readonly change?: Changes;
}

/** All that was appended, as one change. The list is that of the store alone, and grows. */
interface Changes extends SessionChange {
  readonly entries: SessionChange['entries'][number][];
}

/** Stores session states in this process. Versions are never reused, even after a session is removed. */
export const inProcessSessions = (): SessionStore => {
  const stored = new Map<string, Stored>();
  let last = 0;
  let lastTime = 0;
  const saved$ = (
    id: string,
    expectedVersion: number | undefined,
    save: (former: Stored | undefined) => Pick<Stored, 'title' | 'state' | 'change'>,
  ): Observable<number> =>
    defer(() => {
      const former = stored.get(id);
      if (former?.version !== expectedVersion) {
        throw sessionConflict(id, expectedVersion, former?.version);
      }
      const kept = save(former);
      last += 1;
      // Sessions that are saved in the same millisecond keep their order.
      lastTime = Math.max(Date.now(), lastTime + 0.001);
      stored.set(id, { ...kept, id, version: last, savedAt: lastTime });
      return of(last);
    });
  return {
    load$: (sessionId) =>
      defer(() => {
        const found = stored.get(sessionId);
        return of(found && { version: found.version, state: copied(wholeOf(found)) });
      }),
    save$: (sessionId, state, expectedVersion) =>
      saved$(sessionId, expectedVersion, () => ({ ...titleOf(state), state: copied(state) })),
    append$: (sessionId, change, expectedVersion) =>
      saved$(sessionId, expectedVersion, (former) => ({
        ...titleOf(change.rest),
        state: former?.state,
        change: added(former?.change, change),
      })),
    find$: (query) =>
      defer(() => {
        const asked = checkSessionQuery(query);
        const matches = (found: Stored): boolean =>
          asked.search === '' || searchTextOf(wholeOf(found)).includes(asked.search);
        const page = pageOf([...stored.values()], asked, matches);
        return of(page.map(({ id, savedAt, title }) => ({ id, ...titleOf({ title }), savedAt })));
      }),
    remove$: (sessionId) => defer(() => of(stored.delete(sessionId))),
  };
};

const wholeOf = ({ state, change }: Stored): unknown =>
  change === undefined ? state : appendedState(state, change);

const added = (former: Changes | undefined, { entries, head, rest }: SessionChange): Changes => {
  const all = former?.entries ?? [];
  all.push(...entries.map(copyOf));
  return { entries: all, head, rest: copyOf(rest) };
};

// eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- A copy has the type of the original.
const copyOf = <T>(value: T): T => copied(value) as T;
