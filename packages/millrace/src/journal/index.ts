export { attach$, replay$ } from './attach.js';
export { type CallStore, type CallStoreOptions, createCallStore } from './call-store.js';
export type {
  CallQuery,
  CallStoreDriver,
  Claim,
  NewRecord,
  RecordRange,
  RemovedCall,
  StoredCall,
  StoredRecord,
  JournalStore,
} from './call-store-driver.js';
export { sessionIn } from './call-record.js';
export { calls$, type CallSummary, prune$, type ReadableCall } from './call-summary.js';
export { copyCalls$ } from './copy-calls.js';
export { isSameDecision, isUndecided$ } from './decision.js';
export { otherAnswer, otherQuestion, otherResult, type StepEdit } from './forked-records.js';
export { fork$ } from './fork.js';
export { type Drainable, draining } from './draining.js';
export { inProcessCalls } from './in-process-calls.js';
export { type Journal, journal, type JournalOptions } from './journal.js';
export { isSeal, type RecordSeal } from './sealed-records.js';
export { steps$, type StepSummary } from './steps.js';
export { isUncertain } from '../memories/cancel-suspended.js';
export { assertSuspendsBelow } from './below.js';
export { suspendBelow } from '../memories/suspend.js';
