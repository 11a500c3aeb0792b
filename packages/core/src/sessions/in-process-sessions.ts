import { defer, of } from 'rxjs';
import { copied } from '../copied.js';
import { sessionConflict } from './session-conflict.js';
import type { SessionStore, StoredSession } from './session-store.js';

/** Keeps the states of sessions in this process, for as long as it is held. A version never comes again, also where a session is removed and saved anew. */
export const inProcessSessions = (): SessionStore => {
  const stored = new Map<string, StoredSession>();
  let last = 0;
  return {
    load$: (sessionId) =>
      defer(() => {
        const found = stored.get(sessionId);
        return of(found && { version: found.version, state: copied(found.state) });
      }),
    save$: (sessionId, state, expectedVersion) =>
      defer(() => {
        const version = stored.get(sessionId)?.version;
        if (version !== expectedVersion) throw sessionConflict(sessionId, expectedVersion, version);
        last += 1;
        stored.set(sessionId, { version: last, state: copied(state) });
        return of(last);
      }),
    list$: () => defer(() => of([...stored.keys()])),
    remove$: (sessionId) => defer(() => of(stored.delete(sessionId))),
  };
};
