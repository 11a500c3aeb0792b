import type { MemoryFactory } from 'millrace';
import type { CallStore } from 'millrace/journal';
import type { LongTermMemory } from 'millrace/long-term-memory';
import type { SessionStore } from 'millrace/sessions';
import type { Observable } from 'rxjs';

/** Persists the calls, conversations and sessions of agents. Opens nothing before the first use. */
export interface Store {
  /** The steps and events of calls. Pass it to a journal: `createAgent({ use: [journal(store.calls)] })`. */
  readonly calls: CallStore;
  /**
   * The memory of sessions: `sessions(agent, { memory })`. Conversations are trees: if two processes continue the same
   * conversation at the same time, both answers are stored, as branches.
   */
  readonly memory: MemoryFactory;
  /** The states of sessions: `keepSessions(agent, store.sessions)`. */
  readonly sessions: SessionStore;
  /**
   * Closes the store, and completes when pending writes are done and everything is released. Calls that are being
   * recorded error with `store` and can be resumed elsewhere immediately; followers of calls complete. Later use of the
   * store errors with `store`. Cold.
   */
  close$(): Observable<never>;
}

/** A store with a long-term memory. */
export interface DatabaseStore extends Store {
  /** Facts about users, across sessions: `withLongTermMemory({ memory })`. */
  readonly longTermMemory: LongTermMemory;
  /**
   * Releases the claims of a process that is known to be dead, so that its calls can be resumed immediately instead of after
   * their leases. A process that lives after all can no longer write to these calls. Completes when done. Cold.
   */
  release$(callIds: readonly string[]): Observable<never>;
}
