import type { Observable } from 'rxjs';
import type { SessionState } from './session-state.js';

/** A state as a store has it. */
export interface StoredSession {
  /** Another one after each save. */
  readonly version: number;
  /** What was saved. Whoever loads it checks it, as `session.loadState` does. */
  readonly state: unknown;
}

/**
 * Keeps the states of sessions. A save names the version it follows, and changes nothing if that is not the current one: of several concurrent saves, one wins. Copies states in and out. An id is any text and
 * never a path; a store rejects ids that it cannot keep with `invalidRequest`. Everything is cold.
 */
export interface SessionStore {
  /** Emits what is there, or `undefined`, and completes. */
  load$(sessionId: string): Observable<StoredSession | undefined>;
  /**
   * Saves a state in the place of the one of this version, or as the first one where there is none to be, and emits its own version. Errors with
   * `conflict` where there is another version by now, or none any more.
   */
  save$(
    sessionId: string,
    state: SessionState,
    expectedVersion: number | undefined,
  ): Observable<number>;
  /** Emits the ids of all sessions there are, in any order, and completes. */
  list$(): Observable<readonly string[]>;
  /** Removes a session, and completes; one that is not there is no error. */
  remove$(sessionId: string): Observable<unknown>;
}
