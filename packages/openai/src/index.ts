export type { ApiKey } from '@millrace/wire';
export { endpoint, type Endpoint } from './endpoint.js';
export type {
  EndpointOptions,
  MediaHandling,
  MediaOrigin,
  MediaTarget,
  ResponsesOptions,
} from './options.js';
export type {
  MediaType,
  Profile,
  ReasoningEffort,
  ToolIdRule,
  UnsupportedOptions,
  Verbosity,
} from './profile.js';
export {
  azure,
  deepseek,
  gemini,
  groq,
  llamaCpp,
  lmStudio,
  mistral,
  ollama,
  openai,
  openrouter,
  profiles,
  qwen,
  snowflake,
  type VendorName,
  vllm,
} from './vendors.js';
