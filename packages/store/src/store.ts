import type { MemoryFactory } from '@millrace/core';
import type { CallStore } from '@millrace/core/journal';
import type { LongTermMemory } from '@millrace/core/long-term-memory';
import type { SessionStore } from '@millrace/core/sessions';
import type { Observable } from 'rxjs';

/** A place where agents keep what outlasts a process. Nothing is opened before it is used. */
export interface Store {
  /** Calls: their steps and events. For a journal: `createAgent({ use: [journal(calls)] })`. */
  readonly calls: CallStore;
  /**
   * The memory of sessions: `sessions(agent, { memory })`. A conversation that two processes go on with at the same time is a `conflict` for the second: what is loaded is what is
   * added to.
   */
  readonly memory: MemoryFactory;
  /** The states of sessions: `keepSessions(agent, store.sessions)`. */
  readonly sessions: SessionStore;
  /**
   * Closes the store, and completes when all is given back: calls that are written error with `store`, and are free for others at once; who follows calls is told no more, and
   * completes; what was being written is written to its end. What is used later errors with `store`. Cold.
   */
  close$(): Observable<never>;
}

/** A store that remembers users, too. */
export interface DatabaseStore extends Store {
  /** What is remembered of users, from one session to the next: `withLongTermMemory({ memory })`. */
  readonly longTermMemory: LongTermMemory;
}
