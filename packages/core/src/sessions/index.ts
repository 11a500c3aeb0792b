// Conversations of an agent, and where their states are kept: a port, a store in this process, and an agent whose sessions a store keeps.
export { inProcessSessions } from './in-process-sessions.js';
export {
  type KeepSessionsOptions,
  keepSessions,
  type KeptSession,
  type KeptSessions,
} from './keep-sessions.js';
export type { ResumableSession } from './resume-session.js';
export { sessionConflict } from './in-process-sessions.js';
export type { SessionStore, StoredSession } from './session-store.js';
export { type JsonPatchOperation, toJsonPatch } from './to-json-patch.js';
export {
  type Session,
  type SessionCallOptions,
  type SessionOptions,
  type Sessions,
  sessions,
  type SessionsOptions,
} from './sessions.js';
export type { OnBusy, QueuedCall } from './session-queue.js';
export type {
  EarlierCall,
  LastCall,
  PendingApproval,
  SessionState,
  ToolGroupStates,
} from './session-state.js';
export type { SteerOutcome } from './steering.js';
