// Long-term memory from conversations: facts that a model extracts, updates and forgets in the background.
export { extractMemories, type MemoryExtraction } from './extract-memories.js';
export type { ExtractionCost, ExtractionEvent, ExtractMemoriesOptions } from './extractor.js';
export type { Fact, FormerFact } from './facts.js';
export type { FactCandidate, Refusal } from './operations.js';
export type { Doubt } from './policy.js';
