export { endpoint, type Endpoint } from './endpoint.js';
export type { ApiKey, EndpointOptions, ResponsesOptions } from './options.js';
export type {
  MediaType,
  Profile,
  ReasoningEffort,
  ToolIdRule,
  UnsupportedOptions,
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
  vllm,
} from './vendors.js';
