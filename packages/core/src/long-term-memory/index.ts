// What an agent remembers of its users, from one session to the next. Most agents need withLongTermMemory and a memory.
export {
  inProcessLongTermMemory,
  type InProcessLongTermMemoryOptions,
} from './in-process-long-term-memory.js';
export type {
  LongTermMemory,
  MemoryEntry,
  MemoryKind,
  MemoryQuery,
  MemoryScope,
  NewMemory,
  RecalledMemory,
} from './long-term-memory.js';
export type {
  LongTermMemoryMode,
  LongTermMemoryOptions,
  MemoryCaller,
  ScopeOfCall,
} from './memory-settings.js';
export { withLongTermMemory } from './with-long-term-memory.js';
