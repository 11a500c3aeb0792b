export type { ApiKey, JsonRecord } from '@millrace/wire';
export { anthropic } from './anthropic.js';
export type { CacheTime } from './cache-marks.js';
export type { Effort } from './messages-request.js';
export type { AnthropicOptions } from './options.js';
export type { Thinking } from './thinking.js';
