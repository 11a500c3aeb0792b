/** Error types and codes for a conversation that exceeds the context window. */
export const contextCodes: ReadonlySet<string> = new Set([
  'context_length_exceeded',
  'exceed_context_size_error',
  'model_context_window_exceeded',
  'string_above_max_length',
]);

/** Messages of vendors that have no type or code for it. */
export const contextMessages: readonly RegExp[] = [
  // OpenAI, DeepSeek, vLLM, OpenRouter, Mistral
  /maximum context length/i,
  /(model|maximum|max)('s)? context (length|window|size) (is|of) (only )?\d+/i,
  // OpenAI's Responses
  /exceeds the context window/i,
  // Anthropic, also through Bedrock and proxies that drop the rest of the message
  /exceed context limit/i,
  /\b(prompt|input|conversation|context|messages|history)( (text|messages?|tokens|length))?( (is|are|was|were))? too long\b/i,
  /\bcontext (window|length)( (size|limit))?( (is|was|has been))? (exceeded|reached|full)\b/i,
  // A number of tokens and the lower one that is allowed, unless they are those of an answer
  /^(?!.*(output|completion|max_tokens|budget_tokens|thinking))(.*\D)?\d[\d,]* (input |prompt )?tokens? (exceeds?|>|is (more|greater|larger) than) (the )?(limit|maximum|max|\d)/is,
  // vLLM
  /longer than the maximum model length/i,
  /too long to fit into the model/i,
  /exceeds (the )?model's context length/i,
  // SGLang, and others that compare the input with what the model takes
  /longer than (the )?(model|maximum|max)('s)?( allowed)? (context|input|sequence)( length| window| size)?/i,
  /(input|prompt|request|conversation|context)( (tokens?|length|text|messages?|size))? (is|are|was) too (long|large|big) for/i,
  // Kimi, MiniMax, Cohere, Copilot, Zhipu
  /(exceed(s|ed|ing)?|over|above|beyond) (the )?(model'?s? |maximum |max |allowed )*(context|token|input|prompt|sequence)s?( (token|length|window|size|context))* (limit|length|window|size|maximum)/i,
  /(context|prompt|input|sequence)( (window|length|size|tokens?|count))+ (of [\d,]+ )?(exceeds?|is (larger|greater|longer|more) than) (the )?(max|maximum|limit|allowed|model)/i,
  /prompt token count of [\d,]+ exceeds/i,
  /number of tokens in the (prompt|input|request|messages) exceeds/i,
  /(prompt|input) exceeds (the )?max(imum)?( input| prompt| context)? (length|tokens|size)/i,
  /too many (input |prompt )?tokens\b(?!.{0,60}per (minute|min|day|hour|second))/i,
  // Groq
  /reduce the length of the messages/i,
  // Gemini
  /input token count .{0,40}exceeds the maximum number of tokens/i,
  // llama.cpp and Ollama
  /exceeds? the (available )?context (size|length)/i,
  // LM Studio
  /greater than the context length/i,
  // xAI
  /maximum prompt length is \d+/i,
  // Qwen
  /range of input length should be/i,
  // Text Generation Inference, Together
  /tokens \+ `?max_new_tokens`? must be/i,
];

/** A limit of tokens or requests per time, which is no limit of the conversation. */
export const rateMessage =
  /\b(tokens?|requests?|tpm|rpm|tpd)\b.{0,40}(\bper|\/) ?(minute|min|second|sec|hour|day)\b|\brate limit/i;

/** Error types and codes for a request that a content filter refused. */
export const refusalCodes: ReadonlySet<string> = new Set([
  'content_filter',
  'content_policy_violation',
  'responsibleaipolicyviolation',
  'data_inspection_failed',
  'datainspectionfailed',
]);

/** Error types and codes for exhausted credit or quota. Waiting for a moment does not help. */
export const quotaCodes: ReadonlySet<string> = new Set([
  'insufficient_quota',
  'insufficient_balance',
  'insufficient_credits',
  'exceeded_current_quota_error',
  'billing_error',
  'billing_not_active',
  'billing_hard_limit_reached',
  'arrearage',
]);

/** The HTTP status that an error type or code implies, for errors without a status. */
export const statusByCode: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['invalid_argument', 400],
  ['invalid_prompt', 400],
  ['bad_request', 400],
  ['badrequesterror', 400],
  ['authentication_error', 401],
  ['invalid_api_key', 401],
  ['unauthenticated', 401],
  ['permission_error', 403],
  ['permission_denied', 403],
  ['not_found', 404],
  ['not_found_error', 404],
  ['model_not_found', 404],
  ['request_timeout', 408],
  ['conflict_error', 409],
  ['request_too_large', 413],
  ['too_many_requests', 429],
  ['rate_limit_error', 429],
  ['rate_limit_exceeded', 429],
  ['rate_limited', 429],
  ['resource_exhausted', 429],
  ['throttling', 429],
  ['api_error', 500],
  ['internal', 500],
  ['internal_error', 500],
  ['internal_server_error', 500],
  ['internalservererror', 500],
  ['server_error', 500],
  ['service_unavailable', 503],
  ['service_unavailable_error', 503],
  ['unavailable', 503],
  ['deadline_exceeded', 504],
  ['timeout_error', 504],
  ['overloaded', 529],
  ['overloaded_error', 529],
  ['engine_overloaded_error', 529],
]);
