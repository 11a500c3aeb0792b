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
 * Where the states of sessions are kept. A save says which version it follows, and one that follows no more what is there changes nothing: of many who
 * save at once, one wins. What is given out and taken are copies. An id is any text, and never a path: a store refuses one that it cannot keep
 * with an `invalidRequest` error. Everything is cold.
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
