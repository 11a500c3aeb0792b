// Conversations of an agent, and where their states are kept: a port, a store in this process, and an agent whose sessions a store keeps.
export {
  type EarlierCall,
  inProcessSessions,
  type LastCall,
  type PendingApproval,
  sessionConflict,
  type SessionState,
  type SessionStore,
  type StoredSession,
  type ToolGroupStates,
} from './session-state.js';
export { keepSessions, type KeepSessionsOptions } from './keep-sessions.js';
export type { KeptSession, KeptSessions } from './keep-sessions.js';
export type { ResumableSession } from './resume-session.js';
export {
  type Session,
  type SessionCallOptions,
  type SessionOptions,
  type Sessions,
  sessions,
  type SessionsOptions,
} from './sessions.js';
export type { OnBusy, QueuedCall } from './session-queue.js';
export type { SteerOutcome } from './steering.js';
export { type JsonPatchOperation, toJsonPatch } from './to-json-patch.js';
