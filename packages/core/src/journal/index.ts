export { attach$, type AttachOptions, replay$, type ReplayOptions } from './attach.js';
export { type CallStore, type CallStoreOptions, createCallStore } from './call-store.js';
export type {
  CallStoreDriver,
  Claim,
  NewRecord,
  RecordRange,
  StoredCall,
  StoredRecord,
  JournalStore,
  OpenJournal,
  StoreOfCalls,
} from './call-store-driver.js';
export { type ForkOrigin, type ForkPoint, sessionIn } from './call-record.js';
export {
  calls$,
  type CallStatus,
  type CallSummary,
  prune$,
  type PruneOptions,
  type ReadableCall,
  type UnreadableCall,
} from './call-summary.js';
export { type ForkedStep, otherAnswer, otherQuestion, otherResult } from './forked-records.js';
export type { StepEdit } from './forked-records.js';
export { fork$, type ForkOptions } from './fork.js';
export { type Drainable, draining } from './draining.js';
export { inProcessCalls } from './in-process-calls.js';
export { type Journal, journal, type Resumable, type ResumeOptions } from './journal.js';
export { type StepKind, steps$, type StepSummary } from './steps.js';
