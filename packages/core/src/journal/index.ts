export { type CallStore, type CallStoreOptions, createCallStore } from './call-store.js';
export type {
  CallStoreDriver,
  Claim,
  NewRecord,
  RecordRange,
  StoredCall,
  StoredRecord,
} from './call-store-driver.js';
export { inProcessCalls } from './in-process-calls.js';
