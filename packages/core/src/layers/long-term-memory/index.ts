// What an agent remembers of its users, from one session to the next. Most agents need withLongTermMemory and a memory.
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
