export { attach$, type AttachOptions } from './attach.js';
export { type CallStore, type CallStoreOptions, createCallStore } from './call-store.js';
export type {
  CallStoreDriver,
  Claim,
  NewRecord,
  RecordRange,
  StoredCall,
  StoredRecord,
} from './call-store-driver.js';
export type { ForkOrigin, ForkPoint } from './call-record.js';
export type { CallStatus, CallSummary, ReadableCall, UnreadableCall } from './call-summary.js';
export { calls$ } from './call-summary.js';
export { otherAnswer, otherQuestion, otherResult } from './edits.js';
export { fork$, type ForkOptions } from './fork.js';
export type { ForkedStep, StepEdit } from './forked-records.js';
export { type Drainable, draining } from './draining.js';
export { inProcessCalls } from './in-process-calls.js';
export { type Journal, journal, type Resumable, type ResumeOptions } from './journal.js';
export type { JournalStore, OpenJournal } from './journal-store.js';
export { prune$, type PruneOptions } from './prune.js';
export { replay$, type ReplayOptions } from './replay.js';
export { type StepKind, steps$, type StepSummary } from './steps.js';
export type { StoreOfCalls } from './stored-call.js';
