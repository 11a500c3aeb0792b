import type { VendorErrorKind } from './vendor-errors.js';

/** A message that vendors send, as seen on a date. */
export interface VendorMessage {
  readonly vendor: string;
  readonly kind: VendorErrorKind;
  readonly text: string;
  /** The latest month in which it was seen. */
  readonly seen: `20${number}-${number}` | 'before 2026-11';
  /** A public issue that quotes it. That of some older entries was not recorded. */
  readonly source: `https://${string}` | 'not recorded';
}

const github = 'https://github.com';

export const vendorMessages: readonly VendorMessage[] = [
  {
    vendor: 'OpenAI, Groq, Anthropic',
    kind: 'rate',
    text: 'Request too large for model llama-3.1-8b-instant in organization org_x service tier on_demand on tokens per minute (TPM): Limit 6000, Requested 12328, please reduce your message size and try again.',
    seen: '2026-05',
    source: `${github}/HunorLaczko/ha-groq-cloud-api/issues/27`,
  },
  {
    vendor: 'Bedrock',
    kind: 'rate',
    text: 'Too many tokens, please wait before trying again.',
    seen: '2026-06',
    source: `${github}/crewAIInc/crewAI/pull/7417`,
  },
  {
    vendor: 'Azure OpenAI',
    kind: 'refusal',
    text: "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.",
    seen: '2026-07',
    source: `${github}/onyx-dot-app/onyx/issues/10893`,
  },
  {
    vendor: 'DeepSeek',
    kind: 'refusal',
    text: 'Content Exists Risk',
    seen: '2026-08',
    source: `${github}/whiteguo233/OpenBiliClaw/issues/199`,
  },
  {
    vendor: 'OpenAI, DeepSeek, OpenRouter, Mistral, vLLM',
    kind: 'context',
    text: "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
    seen: '2026-01',
    source: `${github}/evalstate/fast-agent/issues/621`,
  },
  {
    vendor: 'vLLM',
    kind: 'context',
    text: "You passed 202753 input tokens and requested 0 output tokens. However, the model's context length is only 202752 tokens, resulting in a maximum input length of 202752 tokens.",
    seen: '2026-03',
    source: `${github}/anomalyco/opencode/pull/17763`,
  },
  {
    vendor: 'OpenAI Responses',
    kind: 'context',
    text: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
    seen: '2025-12',
    source: `${github}/earendil-works/pi/issues/129`,
  },
  {
    vendor: 'OpenAI',
    kind: 'context',
    text: 'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 477469 tokens. Please reduce the length of the messages.',
    seen: '2026-03',
    source: `${github}/archi-physics/archi/issues/497`,
  },
  {
    vendor: 'Anthropic',
    kind: 'context',
    text: 'input length and `max_tokens` exceed context limit: 182831 + 64000 > 200000, decrease input length or `max_tokens` and try again',
    seen: '2025-03',
    source: `${github}/Aider-AI/aider/issues/3618`,
  },
  {
    vendor: 'Anthropic, Bedrock, Z.AI',
    kind: 'context',
    text: 'The model returned the following errors: prompt is too long: 200049 tokens > 200000 maximum',
    seen: '2026-09',
    source: `${github}/earendil-works/pi/issues/9805`,
  },
  {
    vendor: 'Ollama',
    kind: 'context',
    text: 'ollama: context length exceeded for llama3',
    seen: '2026-04',
    source: `${github}/openclaw/openclaw/issues/58839`,
  },
  {
    vendor: 'Anthropic and proxies that drop the words around the numbers',
    kind: 'context',
    // Not if the numbers are those of an answer.
    text: 'messages: 210,000 tokens > 200,000 maximum',
    seen: '2024-07',
    source: `${github}/entropy-research/Devon/issues/88`,
  },
  {
    vendor: 'vLLM',
    kind: 'context',
    text: 'The decoder prompt (length 93016) is longer than the maximum model length of 65536.',
    seen: '2026-03',
    source: `${github}/anomalyco/opencode/pull/17763`,
  },
  {
    vendor: 'vLLM',
    kind: 'context',
    text: 'The prompt (total length 25938) is too long to fit into the model (context length 4096).',
    seen: '2025-01',
    source: `${github}/vllm-project/vllm/issues/12165`,
  },
  {
    vendor: 'OpenAI-compatible servers',
    kind: 'context',
    text: "Your request exceeds the model's context length.",
    seen: 'before 2026-11',
    source: 'not recorded',
  },
  {
    vendor: 'SGLang',
    kind: 'context',
    text: "The input (85050 tokens) is longer than the model's context length (32768 tokens).",
    seen: '2025-07',
    source: `${github}/sgl-project/sglang/issues/8096`,
  },
  {
    vendor: 'SGLang, Volcano Ark, LM Studio',
    kind: 'context',
    text: 'Input length 203743 exceeds the maximum length 202752',
    seen: '2026-02',
    source: `${github}/langgenius/dify/issues/32221`,
  },
  {
    vendor: 'Bedrock',
    kind: 'context',
    text: 'Input is too long for requested model.',
    seen: '2023-12',
    source: `${github}/aws-samples/bedrock-chat/issues/95`,
  },
  {
    vendor: 'Kimi, MiniMax, Copilot, Zhipu, llama-cpp-python',
    kind: 'context',
    text: 'Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)',
    seen: '2025-12',
    source: `${github}/earendil-works/pi/issues/129`,
  },
  {
    vendor: 'MiniMax',
    kind: 'context',
    text: 'invalid params, context window exceeds limit (2013)',
    seen: '2025-12',
    source: `${github}/earendil-works/pi/issues/129`,
  },
  {
    vendor: 'Copilot',
    kind: 'context',
    text: 'prompt token count of 140000 exceeds the limit of 128000',
    seen: '2025-12',
    source: `${github}/earendil-works/pi/issues/129`,
  },
  {
    vendor: 'Cohere',
    kind: 'context',
    text: 'too many tokens: total number of tokens in the prompt exceeds the limit of 128000',
    seen: 'before 2026-11',
    source: 'not recorded',
  },
  {
    vendor: 'Cohere',
    kind: 'context',
    text: "total tokens exceeds the model's max of 4096",
    seen: '2026-04',
    source: `${github}/openclaw/openclaw/issues/58839`,
  },
  {
    vendor: 'Zhipu',
    kind: 'context',
    text: 'Prompt exceeds max length',
    seen: '2025-12',
    source: `${github}/earendil-works/pi/issues/129`,
  },
  {
    vendor: 'Cohere',
    kind: 'context',
    text: 'too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try using a shorter prompt or a smaller max_tokens value.',
    seen: '2022-11',
    source: `${github}/cohere-ai/sandbox-topically/issues/4`,
  },
  {
    vendor: 'Mistral',
    kind: 'context',
    text: 'Too many tokens in batch. Max is 16384 got 17555',
    seen: '2024-05',
    source: `${github}/aurelio-labs/semantic-router/issues/297`,
  },
  {
    vendor: 'Groq, Cerebras',
    kind: 'context',
    text: 'Please reduce the length of the messages or completion. Current length is 140000 while limit is 131072',
    seen: '2026-05',
    source: `${github}/langchain-ai/langchain/issues/37533`,
  },
  {
    vendor: 'Gemini',
    kind: 'context',
    text: 'The input token count (1189841) exceeds the maximum number of tokens allowed (1048576).',
    seen: '2025-11',
    source: `${github}/arkavo-org/arkavo-edge/issues/371`,
  },
  {
    vendor: 'llama.cpp',
    kind: 'context',
    text: 'request (66202 tokens) exceeds the available context size (65536 tokens), try increasing it',
    seen: '2026-04',
    source: `${github}/openclaw/openclaw/pull/64196`,
  },
  {
    vendor: 'LM Studio',
    kind: 'context',
    text: 'The number of tokens to keep from the initial prompt is greater than the context length.',
    seen: '2025-12',
    source: `${github}/earendil-works/pi/issues/129`,
  },
  {
    vendor: 'xAI',
    kind: 'context',
    text: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    seen: '2025-12',
    source: `${github}/earendil-works/pi/issues/129`,
  },
  {
    vendor: 'Qwen',
    kind: 'context',
    text: '<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]',
    seen: '2026-07',
    source: `${github}/agentscope-ai/QwenPaw/issues/6255`,
  },
  {
    vendor: 'Text Generation Inference, Together',
    kind: 'context',
    text: 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 6204 `inputs` tokens and 2047 `max_new_tokens`',
    seen: '2024-05',
    source: `${github}/huggingface/chat-ui/issues/1149`,
  },
];
