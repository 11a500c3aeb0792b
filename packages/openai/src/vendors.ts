import { endpoint } from './endpoint.js';
import type { Profile } from './profile.js';

/**
 * OpenAI's reasoning models: they support neither temperature nor stop sequences, and encrypt their reasoning. From
 * 5.1 on, reasoning can be turned off. `gpt-35-turbo`, Azure's name of an old model, must not match.
 */
const reasoners = /^(?:ft:)?(?:o\d|gpt-(?:[5-9]|[12]\d)(?!\d)(?![^:]*chat)|codex|computer-use)/u;

const ofOpenAI: Omit<Profile, 'name'> = {
  maxTokensField: 'max_completion_tokens',
  nativeOutput: 'always',
  takesNames: true,
  encryptsReasoning: reasoners,
  takesNoContent: true,
  unsupported: [
    { models: reasoners, options: ['temperature'], whileReasoning: true },
    { models: reasoners, options: ['stopSequences'] },
  ],
};

export type VendorName =
  | 'openai'
  | 'azure'
  | 'deepseek'
  | 'qwen'
  | 'mistral'
  | 'groq'
  | 'openrouter'
  | 'snowflake'
  | 'gemini'
  | 'ollama'
  | 'vllm'
  | 'llamaCpp'
  | 'lmStudio';

/** The built-in profiles. */
export const profiles: Readonly<Record<VendorName, Profile>> = {
  openai: {
    ...ofOpenAI,
    name: 'OpenAI',
    baseURL: 'https://api.openai.com/v1',
    baseURLVariable: 'OPENAI_BASE_URL',
    keyVariable: 'OPENAI_API_KEY',
    isOpenAI: true,
  },
  azure: {
    ...ofOpenAI,
    name: 'Azure OpenAI',
    baseURLVariable: 'AZURE_OPENAI_BASE_URL',
    keyVariable: 'AZURE_OPENAI_API_KEY',
    keyHeader: 'api-key',
    takesTokens: true,
  },
  deepseek: {
    name: 'DeepSeek',
    baseURL: 'https://api.deepseek.com/v1',
    keyVariable: 'DEEPSEEK_API_KEY',
    thinkingField: 'reasoning_content',
    media: [],
    // It rejects a forced tool choice while it thinks.
    unsupported: [{ models: /^(?!deepseek-chat$)/u, options: ['toolChoice'] }],
  },
  qwen: {
    name: 'Qwen',
    baseURL: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    baseURLVariable: 'DASHSCOPE_BASE_URL',
    keyVariable: 'DASHSCOPE_API_KEY',
    media: ['image', 'audio'],
    unsupported: [{ options: ['toolChoice'] }],
  },
  mistral: {
    name: 'Mistral',
    baseURL: 'https://api.mistral.ai/v1',
    keyVariable: 'MISTRAL_API_KEY',
    asksForUsage: false,
    nativeOutput: 'withoutTools',
    media: ['image'],
    takesToolMedia: true,
    toolIds: { accepts: /^[a-zA-Z0-9]{9}$/u, rename: (n) => n.toString(36).padStart(9, '0') },
    assistantTextAfterTools: 'OK.',
    continuation: { prefix: true },
  },
  groq: {
    name: 'Groq',
    baseURL: 'https://api.groq.com/openai/v1',
    keyVariable: 'GROQ_API_KEY',
    maxTokensField: 'max_completion_tokens',
    takesNoContent: true,
    media: ['image'],
  },
  openrouter: {
    name: 'OpenRouter',
    baseURL: 'https://openrouter.ai/api/v1',
    keyVariable: 'OPENROUTER_API_KEY',
    takesAnnotations: true,
    takesNoContent: true,
  },
  snowflake: {
    name: 'Snowflake Cortex',
    baseURLVariable: 'SNOWFLAKE_BASE_URL',
    keyVariable: 'SNOWFLAKE_PAT',
    maxTokensField: 'max_completion_tokens',
    finishesWithDone: true,
  },
  gemini: {
    name: 'Gemini',
    baseURL: 'https://generativelanguage.googleapis.com/v1beta/openai',
    keyVariable: 'GEMINI_API_KEY',
    nativeOutput: 'withoutTools',
    media: ['image', 'audio'],
    sendsWholeCalls: true,
    // Some of its models reject empty text.
    takesNoContent: true,
    // Google documents this value for calls of another model.
    unsignedCall: {
      extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } },
    },
  },
  ollama: {
    name: 'Ollama',
    baseURL: 'http://127.0.0.1:11434/v1',
    baseURLVariable: 'OLLAMA_BASE_URL',
    keyVariable: 'OLLAMA_API_KEY',
    keyless: true,
    nativeOutput: 'withoutTools',
    media: ['image'],
    sendsWholeCalls: true,
    // Ollama ignores it silently.
    unsupported: [{ options: ['toolChoice'] }],
  },
  vllm: {
    name: 'vLLM',
    baseURL: 'http://127.0.0.1:8000/v1',
    baseURLVariable: 'VLLM_BASE_URL',
    keyVariable: 'VLLM_API_KEY',
    keyless: true,
    nativeOutput: 'withoutTools',
    media: ['image', 'audio'],
  },
  llamaCpp: {
    name: 'llama.cpp',
    baseURL: 'http://127.0.0.1:8080/v1',
    baseURLVariable: 'LLAMA_BASE_URL',
    keyVariable: 'LLAMA_API_KEY',
    keyless: true,
    nativeOutput: 'withoutTools',
    media: ['image', 'audio'],
    takesNamedChoice: false,
  },
  lmStudio: {
    name: 'LM Studio',
    baseURL: 'http://127.0.0.1:1234/v1',
    baseURLVariable: 'LMSTUDIO_BASE_URL',
    keyVariable: 'LMSTUDIO_API_KEY',
    keyless: true,
    nativeOutput: 'withoutTools',
    media: ['image'],
    takesNamedChoice: false,
  },
};

/** Models of OpenAI. The key is `OPENAI_API_KEY`; `OPENAI_BASE_URL` overrides the base URL. */
export const openai = endpoint(profiles.openai);

/**
 * Models of an Azure resource. `AZURE_OPENAI_BASE_URL` is `https://RESOURCE.openai.azure.com/openai/v1`. The key is
 * `AZURE_OPENAI_API_KEY`, or an `apiKey` function that returns Entra tokens.
 */
export const azure = endpoint(profiles.azure);

/** Models of DeepSeek. The key is `DEEPSEEK_API_KEY`. */
export const deepseek = endpoint(profiles.deepseek);

/**
 * Models of Alibaba's DashScope. The key is `DASHSCOPE_API_KEY`; `body: { enable_thinking: true }` turns on thinking.
 */
export const qwen = endpoint(profiles.qwen);

/** Models of Mistral. The key is `MISTRAL_API_KEY`. */
export const mistral = endpoint(profiles.mistral);

/** Models that Groq serves. The key is `GROQ_API_KEY`. */
export const groq = endpoint(profiles.groq);

/** Models that OpenRouter provides. The key is `OPENROUTER_API_KEY`. */
export const openrouter = endpoint(profiles.openrouter);

/**
 * Models of a Snowflake account. `SNOWFLAKE_BASE_URL` is `https://ACCOUNT.snowflakecomputing.com/api/v2/cortex/v1`. The
 * key is `SNOWFLAKE_PAT`, a programmatic access token.
 */
export const snowflake = endpoint(profiles.snowflake);

/** Google's Gemini, over its OpenAI-compatible endpoint. The key is `GEMINI_API_KEY`. */
export const gemini = endpoint(profiles.gemini);

/** Models of a local Ollama server, port 11434. It needs no key. */
export const ollama = endpoint(profiles.ollama);

/** Models of a local vLLM server, port 8000. It needs no key. */
export const vllm = endpoint(profiles.vllm);

/** The model of a local llama.cpp server, port 8080. It needs no key. */
export const llamaCpp = endpoint(profiles.llamaCpp);

/** Models of a local LM Studio server, port 1234. It needs no key. */
export const lmStudio = endpoint(profiles.lmStudio);
