// The formats in which models write thoughts and tool calls by themselves, if their server leaves these in the text.
export {
  parseToolCalls,
  type ParseToolCallsOptions,
  splitThinking,
  type SplitThinkingOptions,
  type ThinkingTag,
} from './models.js';
