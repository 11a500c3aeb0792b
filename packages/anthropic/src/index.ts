export { anthropic } from './anthropic.js';
export type { CacheTime } from './cache-marks.js';
export type { Effort, JsonRecord } from './messages-request.js';
export type { AnthropicOptions, ApiKey } from './options.js';
export type { Thinking } from './thinking.js';
