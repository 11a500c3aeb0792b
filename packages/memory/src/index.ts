// Long-term memory from conversations: facts that a model extracts, updates and forgets in the background.
export {
  type ExtractionCost,
  type ExtractionEvent,
  type ExtractMemoriesOptions,
  extractMemories,
  type MemoryExtraction,
} from './extract-memories.js';
export type { Fact, FormerFact } from './facts.js';
export type { Refusal } from './operations.js';
