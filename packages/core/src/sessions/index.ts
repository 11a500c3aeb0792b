// Where the states of sessions are kept: a port, a store in this process, and an agent whose sessions a store keeps.
export { inProcessSessions } from './in-process-sessions.js';
export {
  type KeepSessionsOptions,
  keepSessions,
  type KeptSession,
  type KeptSessions,
} from './keep-sessions.js';
export type { ResumableSession } from './resumable-session.js';
export { sessionConflict } from './session-conflict.js';
export type { SessionStore, StoredSession } from './session-store.js';
export { type JsonPatchOperation, toJsonPatch } from './to-json-patch.js';
