import type { Agent, MemoryFactory, Message } from 'millrace';
import { isRecord } from 'millrace/values';
import type { CallStore, Journal } from 'millrace/journal';
import { keepSessions, sessions, type SessionStore } from 'millrace/sessions';
import { map, type Observable, of } from 'rxjs';
import { keptTalk, type Talk, talkOf } from './talk.js';

/** A session in which calls are led, and what outlasts the process of what is said there. */
export interface Conversation {
  readonly talk$: Observable<Talk>;
  readonly load$: Observable<readonly Message[]>;
}

/** One that a memory keeps. */
export const inMemory = (
  agent: Agent,
  watched: MemoryFactory,
  memory: MemoryFactory,
  journal: Journal,
  sessionId: string,
): Conversation => ({
  talk$: of(talkOf(sessions(agent, { memory: watched }).open(sessionId), journal)),
  load$: memory(sessionId).load$(),
});

/** One whose state a store keeps. */
export const inStore = (
  agent: Agent,
  store: SessionStore,
  journal: Journal<CallStore>,
  sessionId: string,
): Conversation => ({
  talk$: keepSessions(agent, store, { journal }).open$(sessionId).pipe(map(keptTalk)),
  load$: store.load$(sessionId).pipe(map((stored) => messagesIn(stored?.state))),
});

/** The messages in the stored state of a session. */
export const messagesIn = (state: unknown): readonly Message[] =>
  isRecord(state) && areMessages(state['messages']) ? state['messages'] : [];

/** The core looks at each of them. */
const areMessages = (kept: unknown): kept is readonly Message[] => Array.isArray(kept);
