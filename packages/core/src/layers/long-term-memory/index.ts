// Long-term memory across sessions: `withLongTermMemory` and a memory.
export { inProcessLongTermMemory } from './in-process-long-term-memory.js';
export {
  checkScope,
  type LongTermMemory,
  type MemoryEntry,
  type MemoryQuery,
  type MemoryScope,
  type NewMemory,
  type RecalledMemory,
} from './long-term-memory.js';
export { withLongTermMemory } from './with-long-term-memory.js';
