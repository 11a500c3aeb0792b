// Conversations of an agent, and where their states are kept: a port, a store in this process, and an agent whose sessions a store keeps.
export type {
  SessionStore,
  StoredSession,
  EarlierCall,
  LastCall,
  PendingApproval,
  SessionState,
  ToolGroupStates,
} from './session-state.js';
export { inProcessSessions, sessionConflict } from './session-state.js';
export type { KeepSessionsOptions, KeptSession, KeptSessions } from './keep-sessions.js';
export { keepSessions } from './keep-sessions.js';
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
