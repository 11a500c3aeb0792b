// Thoughts and tool calls that a server leaves in the text of a model.
export {
  parseToolCalls,
  type ParseToolCallsOptions,
  splitThinking,
  type SplitThinkingOptions,
  type ThinkingTag,
} from './models.js';
