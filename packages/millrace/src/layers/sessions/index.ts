// Conversations of an agent, and stores for their states.
export type {
  JsonPatchOperation,
  SessionChange,
  SessionState,
  SessionStore,
  StoredSession,
} from './session-state.js';
export {
  type CheckedSessionQuery,
  checkSessionQuery,
  searchTextOf,
  type SessionQuery,
  type SessionSummary,
  titleOf,
} from './find-sessions.js';
export { onSuspensionCancelled } from '../../memories/cancel-suspended.js';
export { appendedState } from './appended-state.js';
export { inProcessSessions } from './in-process-sessions.js';
export { sessionConflict, toJsonPatch } from './session-state.js';
export { keepSessions, type KeptSession, type KeptSessions } from './keep-sessions.js';
export { type Session, type Sessions, sessions } from './sessions.js';
export type { SteerOutcome } from './steering.js';
