export { isRecord, parsedJson } from '../values/json.js';
export { checkScope } from '../layers/long-term-memory/long-term-memory.js';
export { nearMatches } from './near-matches.js';
export { around } from '../models/timeouts.js';
export {
  checkOptions,
  defined,
  having,
  isDelay,
  isFlag,
  isFunction,
  isObject,
  isText,
  listOf,
  numberFrom,
  oneOf,
  type Rule,
  wholeNumber,
} from '../values/options.js';
export type { ToolPart, ToolParts, ToolCallChunk } from '../models/tool-parts.js';
export { createToolParts } from '../models/tool-parts.js';
export {
  createMeaningIndex,
  type Fused,
  fuseRankings,
  type MeaningIndex,
} from '../layers/retrieval/meaning-index.js';
export type { Word } from '../layers/retrieval/words.js';
export { endsOf, lookUpForm, termsIn, termsOfRequest, wordsIn } from '../layers/retrieval/words.js';
export { addUsage, noUsage } from '../values/usage.js';
