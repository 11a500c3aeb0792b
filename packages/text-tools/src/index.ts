// Tool calls in the text of a model: in a dialect that the prompt describes, or in the model's own format.
export {
  actionDialect,
  type Dialect,
  flatDialect,
  linesDialect,
  stepsDialect,
  textTools,
} from './dialects/index.js';
export {
  parseToolCalls,
  type ParseToolCallsOptions,
  splitThinking,
  type SplitThinkingOptions,
  type ThinkingTag,
} from './formats/index.js';

// The answer between marks, for consumers that find it by these.
export { finalMarkers, type FinalMarkersOptions } from './final-markers.js';
