/** The meaning of an error of a vendor that neither its status nor its code shows. */
export type VendorErrorKind = 'context' | 'rate' | 'refusal';

/** A message that a vendor sends, as seen on a date. */
export interface VendorError {
  readonly vendor: string;
  readonly kind: VendorErrorKind;
  /** Matches the message and its variants. Several vendors may share one. */
  readonly pattern: RegExp;
  /** The message as it was seen. */
  readonly text: string;
  /** The latest month in which it was seen. */
  readonly seen: `20${number}-${number}` | 'before 2026-11';
  /** A public issue that quotes it. That of some older entries was not recorded. */
  readonly source: `https://${string}` | 'not recorded';
}

const github = 'https://github.com';

/**
 * The messages that classify an error. Vendors change them: add the new one with its date and source, and keep the old
 * one, because servers of users are older. The first match counts, in the order of the kinds: rate, refusal, context.
 */
export const vendorErrors: readonly VendorError[] = [
  {
    vendor: 'OpenAI, Groq, Anthropic',
    kind: 'rate',
    pattern:
      /\b(tokens?|requests?|tpm|rpm|tpd)\b.{0,40}(\bper|\/) ?(minute|min|second|sec|hour|day)\b|\brate limit/i,
    text: 'Request too large for model llama-3.1-8b-instant in organization org_x service tier on_demand on tokens per minute (TPM): Limit 6000, Requested 12328, please reduce your message size and try again.',
    seen: '2026-05',
    source: `${github}/HunorLaczko/ha-groq-cloud-api/issues/27`,
  },
  {
    vendor: 'Bedrock',
    kind: 'rate',
    pattern: /too many (tokens|requests)\b.{0,40}\bwait before trying again/i,
    text: 'Too many tokens, please wait before trying again.',
    seen: '2026-06',
    source: `${github}/crewAIInc/crewAI/pull/7417`,
  },
  {
    vendor: 'Azure OpenAI',
    kind: 'refusal',
    pattern: /content management policy/i,
    text: "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.",
    seen: '2026-07',
    source: `${github}/onyx-dot-app/onyx/issues/10893`,
  },
  {
    vendor: 'DeepSeek',
    kind: 'refusal',
    pattern: /\bcontent exists risk\b/i,
    text: 'Content Exists Risk',
    seen: '2026-08',
    source: `${github}/whiteguo233/OpenBiliClaw/issues/199`,
  },
  {
    vendor: 'OpenAI, DeepSeek, OpenRouter, Mistral, vLLM',
    kind: 'context',
    pattern: /maximum context length/i,
    text: "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
    seen: '2026-01',
    source: `${github}/evalstate/fast-agent/issues/621`,
  },
  {
    vendor: 'vLLM',
    kind: 'context',
    pattern: /(model|maximum|max)('s)? context (length|window|size) (is|of) (only )?\d+/i,
    text: "You passed 202753 input tokens and requested 0 output tokens. However, the model's context length is only 202752 tokens, resulting in a maximum input length of 202752 tokens.",
    seen: '2026-03',
    source: `${github}/anomalyco/opencode/pull/17763`,
  },
  {
    vendor: 'OpenAI Responses',
    kind: 'context',
    pattern: /exceeds the context window/i,
    text: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
    seen: '2025-12',
    source: `${github}/earendil-works/pi/issues/129`,
  },
  {
    vendor: 'OpenAI',
    kind: 'context',
    pattern: /input tokens exceed the configured limit/i,
    text: 'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 477469 tokens. Please reduce the length of the messages.',
    seen: '2026-03',
    source: `${github}/archi-physics/archi/issues/497`,
  },
  {
    vendor: 'Anthropic',
    kind: 'context',
    pattern: /exceed context limit/i,
    text: 'input length and `max_tokens` exceed context limit: 182831 + 64000 > 200000, decrease input length or `max_tokens` and try again',
    seen: '2025-03',
    source: `${github}/Aider-AI/aider/issues/3618`,
  },
  {
    vendor: 'Anthropic, Bedrock, Z.AI',
    kind: 'context',
    pattern:
      /\b(prompt|input|conversation|context|messages|history)( (text|messages?|tokens|length))?( \([\d,]+ tokens\))?( (is|are|was|were))? too long\b/i,
    text: 'The model returned the following errors: prompt is too long: 200049 tokens > 200000 maximum',
    seen: '2026-09',
    source: `${github}/earendil-works/pi/issues/9805`,
  },
  {
    vendor: 'Ollama',
    kind: 'context',
    pattern:
      /\bcontext (window|length)( (size|limit))?( (is|was|has been))? (exceeded|reached|full)\b/i,
    text: 'ollama: context length exceeded for llama3',
    seen: '2026-04',
    source: `${github}/openclaw/openclaw/issues/58839`,
  },
  {
    vendor: 'Anthropic and proxies that drop the words around the numbers',
    kind: 'context',
    // Not if the numbers are those of an answer.
    pattern:
      /^(?!.*(output|completion|max_tokens|budget_tokens|thinking))(.*\D)?\d[\d,]* (input |prompt )?tokens? (exceeds?|>|is (more|greater|larger) than) (the )?(limit|maximum|max|\d)/is,
    text: 'messages: 210,000 tokens > 200,000 maximum',
    seen: '2024-07',
    source: `${github}/entropy-research/Devon/issues/88`,
  },
  {
    vendor: 'vLLM',
    kind: 'context',
    pattern: /longer than the maximum model length/i,
    text: 'The decoder prompt (length 93016) is longer than the maximum model length of 65536.',
    seen: '2026-03',
    source: `${github}/anomalyco/opencode/pull/17763`,
  },
  {
    vendor: 'vLLM',
    kind: 'context',
    pattern: /too long to fit into the model/i,
    text: 'The prompt (total length 25938) is too long to fit into the model (context length 4096).',
    seen: '2025-01',
    source: `${github}/vllm-project/vllm/issues/12165`,
  },
  {
    vendor: 'OpenAI-compatible servers',
    kind: 'context',
    pattern: /exceeds (the )?model's context length/i,
    text: "Your request exceeds the model's context length.",
    seen: 'before 2026-11',
    source: 'not recorded',
  },
  {
    vendor: 'SGLang',
    kind: 'context',
    pattern:
      /longer than (the )?(model|maximum|max)('s)?( allowed)? (context|input|sequence)( length| window| size)?/i,
    text: "The input (85050 tokens) is longer than the model's context length (32768 tokens).",
    seen: '2025-07',
    source: `${github}/sgl-project/sglang/issues/8096`,
  },
  {
    vendor: 'SGLang, Volcano Ark, LM Studio',
    kind: 'context',
    pattern: /input length \(?[\d,]+( tokens)?\)? exceeds (the )?(maximum|model|context)/i,
    text: 'Input length 203743 exceeds the maximum length 202752',
    seen: '2026-02',
    source: `${github}/langgenius/dify/issues/32221`,
  },
  {
    vendor: 'Bedrock',
    kind: 'context',
    pattern:
      /(input|prompt|request|conversation|context)( (tokens?|length|text|messages?|size))? (is|are|was) too (long|large|big) for/i,
    text: 'Input is too long for requested model.',
    seen: '2023-12',
    source: `${github}/aws-samples/bedrock-chat/issues/95`,
  },
  {
    vendor: 'Kimi, MiniMax, Copilot, Zhipu, llama-cpp-python',
    kind: 'context',
    pattern:
      /(exceed(s|ed|ing)?|over|above|beyond) (the )?(model'?s? |maximum |max |allowed )*(context|token|input|prompt|sequence)s?( (token|length|window|size|context))* (limit|length|window|size|maximum)/i,
    text: 'Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)',
    seen: '2025-12',
    source: `${github}/earendil-works/pi/issues/129`,
  },
  {
    vendor: 'MiniMax',
    kind: 'context',
    pattern:
      /(context|prompt|input|sequence)( (window|length|size|tokens?|count))+ (of [\d,]+ )?(exceeds?|is (larger|greater|longer|more) than) (the )?(max|maximum|limit|allowed|model)/i,
    text: 'invalid params, context window exceeds limit (2013)',
    seen: '2025-12',
    source: `${github}/earendil-works/pi/issues/129`,
  },
  {
    vendor: 'Copilot',
    kind: 'context',
    pattern: /prompt token count of [\d,]+ exceeds/i,
    text: 'prompt token count of 140000 exceeds the limit of 128000',
    seen: '2025-12',
    source: `${github}/earendil-works/pi/issues/129`,
  },
  {
    vendor: 'Cohere',
    kind: 'context',
    pattern: /number of tokens in the (prompt|input|request|messages) exceeds/i,
    text: 'too many tokens: total number of tokens in the prompt exceeds the limit of 128000',
    seen: 'before 2026-11',
    source: 'not recorded',
  },
  {
    vendor: 'Cohere',
    kind: 'context',
    pattern: /total tokens exceeds? (the )?model'?s? max/i,
    text: "total tokens exceeds the model's max of 4096",
    seen: '2026-04',
    source: `${github}/openclaw/openclaw/issues/58839`,
  },
  {
    vendor: 'Zhipu',
    kind: 'context',
    pattern:
      /(prompt|input) exceeds (the )?max(imum)?( input| prompt| context)? (length|tokens|size)/i,
    text: 'Prompt exceeds max length',
    seen: '2025-12',
    source: `${github}/earendil-works/pi/issues/129`,
  },
  {
    vendor: 'Cohere, Mistral',
    kind: 'context',
    pattern: /too many (input |prompt )?tokens\b(?!.{0,60}per (minute|min|day|hour|second))/i,
    text: 'Too many tokens in the prompt: 9000 > 8192',
    seen: 'before 2026-11',
    source: 'not recorded',
  },
  {
    vendor: 'Groq, Cerebras',
    kind: 'context',
    pattern: /reduce the length of the (messages|input prompt)/i,
    text: 'Please reduce the length of the messages or completion. Current length is 140000 while limit is 131072',
    seen: '2026-05',
    source: `${github}/langchain-ai/langchain/issues/37533`,
  },
  {
    vendor: 'Gemini',
    kind: 'context',
    pattern: /input token count .{0,40}exceeds the maximum number of tokens/i,
    text: 'The input token count (1189841) exceeds the maximum number of tokens allowed (1048576).',
    seen: '2025-11',
    source: `${github}/arkavo-org/arkavo-edge/issues/371`,
  },
  {
    vendor: 'llama.cpp',
    kind: 'context',
    pattern: /exceeds? the (available )?context (size|length)/i,
    text: 'request (66202 tokens) exceeds the available context size (65536 tokens), try increasing it',
    seen: '2026-04',
    source: `${github}/openclaw/openclaw/pull/64196`,
  },
  {
    vendor: 'LM Studio',
    kind: 'context',
    pattern: /greater than the context length/i,
    text: 'The number of tokens to keep from the initial prompt is greater than the context length.',
    seen: '2025-12',
    source: `${github}/earendil-works/pi/issues/129`,
  },
  {
    vendor: 'xAI',
    kind: 'context',
    pattern: /maximum prompt length is \d+/i,
    text: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    seen: '2025-12',
    source: `${github}/earendil-works/pi/issues/129`,
  },
  {
    vendor: 'Qwen',
    kind: 'context',
    pattern: /range of input length should be/i,
    text: '<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]',
    seen: '2026-07',
    source: `${github}/agentscope-ai/QwenPaw/issues/6255`,
  },
  {
    vendor: 'Text Generation Inference, Together',
    kind: 'context',
    pattern: /tokens \+ `?max_new_tokens`? must be/i,
    text: 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 6204 `inputs` tokens and 2047 `max_new_tokens`',
    seen: '2024-05',
    source: `${github}/huggingface/chat-ui/issues/1149`,
  },
];

/** Whether the message has text of this kind. What it quotes of the request says nothing. */
export const isVendorError = (kind: VendorErrorKind, message: string): boolean => {
  const text = ownText(message.slice(0, maxRead));
  return vendorErrors.some((it) => it.kind === kind && it.pattern.test(text));
};

const maxRead = 2_000;

/** The message without what it quotes of the request: descriptions of tools, and texts in messages. */
const ownText = (message: string): string => {
  // Errors of a place in the request are about its form.
  if (/^(?:tools|functions|messages|input|contents)(?:\.\d|\[\d)/i.test(message)) return '';
  // Proxies quote the whole error of a vendor.
  if (/["'](?:message|error|detail|msg|raw)\\?["']\s*:/.test(message)) return message;
  return message.replaceAll(/"[^"]*\s[^"]*"|(?<![\w])'[^']*\s[^']*'(?!\w)/g, '');
};
