export {
  anthropic,
  type AnthropicOptions,
  type ApiKey,
  type CacheTime,
  type Effort,
  type JsonRecord,
  type Thinking,
} from '@millrace/anthropic';
