// Long-term memory across sessions: `withLongTermMemory` and a memory.
export { inProcessLongTermMemory } from './in-process-long-term-memory.js';
export type {
  LongTermMemory,
  MemoryEntry,
  MemoryQuery,
  MemoryScope,
  NewMemory,
  RecalledMemory,
} from './long-term-memory.js';
export { withLongTermMemory } from './with-long-term-memory.js';
