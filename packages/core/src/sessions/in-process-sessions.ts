import { defer, of } from 'rxjs';
import { copied } from '../copied.js';
import type { SessionStore, StoredSession } from './session-store.js';
import { MillraceError } from '../errors.js';

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

/** The error of a save that does not follow what is there. */
export const sessionConflict = (
  sessionId: string,
  expected: number | undefined,
  found: number | undefined,
): MillraceError =>
  new MillraceError(
    'conflict',
    `The session '${sessionId}' was to be saved after ${versioned(expected)}, and the store has ${versioned(found)}. Somebody else has saved or removed it: open it again.`,
  );

const versioned = (version: number | undefined): string =>
  version === undefined ? 'no state' : `version ${version}`;
