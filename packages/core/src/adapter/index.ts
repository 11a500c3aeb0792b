export { isRecord, parsedJson } from '../json.js';
export { checkScope } from '../long-term-memory/long-term-memory.js';
export { nearMatches } from '../near-matches.js';
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
} from '../options.js';
export {
  createToolParts,
  type ToolPart,
  type ToolParts,
  type ToolUseChunk,
} from '../tool-parts.js';
export { type Fused, fuseRankings } from '../retrieval/fuse-rankings.js';
export { createMeaningIndex, type MeaningIndex } from '../retrieval/meaning-index.js';
export {
  endsOf,
  lookUpForm,
  termsIn,
  termsOfRequest,
  type Word,
  wordsIn,
} from '../retrieval/words.js';
export { addUsage, noUsage } from '../usage.js';
