// Long-term memory across sessions: `withLongTermMemory`, a memory, and facts that a model extracts in the background.
export { extractMemories, type MemoryExtraction } from './extraction/extract-memories.js';
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
