/** The meaning of an error of a vendor that neither its status nor its code shows. */
export type VendorErrorKind = 'context' | 'rate' | 'refusal';

/** A message that vendors send, and its variants. */
export interface VendorError {
  readonly kind: VendorErrorKind;
  readonly pattern: RegExp;
}

/**
 * The messages that classify an error. The whole messages, with date and source, are in `vendor-messages.test-support.ts`.
 * Vendors change them: add the new one there and here, and keep the old one, because servers of users are older. The first
 * match counts, in the order of the kinds: rate, refusal, context.
 */
export const vendorErrors: readonly VendorError[] = [
  // OpenAI, Groq, Anthropic
  {
    kind: 'rate',
    pattern:
      /\b(tokens?|requests?|tpm|rpm|tpd)\b.{0,40}(\bper|\/) ?(minute|min|second|sec|hour|day)\b|\brate limit/i,
  },
  // Bedrock
  { kind: 'rate', pattern: /too many (tokens|requests)\b.{0,40}\bwait before trying again/i },
  // Azure OpenAI
  { kind: 'refusal', pattern: /content management policy/i },
  // DeepSeek
  { kind: 'refusal', pattern: /\bcontent exists risk\b/i },
  // OpenAI, DeepSeek, OpenRouter, Mistral, vLLM
  { kind: 'context', pattern: /maximum context length/i },
  // vLLM
  {
    kind: 'context',
    pattern: /(model|maximum|max)('s)? context (length|window|size) (is|of) (only )?\d+/i,
  },
  // OpenAI Responses
  { kind: 'context', pattern: /exceeds the context window/i },
  // OpenAI
  { kind: 'context', pattern: /input tokens exceed the configured limit/i },
  // Anthropic
  { kind: 'context', pattern: /exceed context limit/i },
  // Anthropic, Bedrock, Z.AI
  {
    kind: 'context',
    pattern:
      /\b(prompt|input|conversation|context|messages|history)( (text|messages?|tokens|length))?( \([\d,]+ tokens\))?( (is|are|was|were))? too long\b/i,
  },
  // Ollama
  {
    kind: 'context',
    pattern:
      /\bcontext (window|length)( (size|limit))?( (is|was|has been))? (exceeded|reached|full)\b/i,
  },
  // Anthropic and proxies that drop the words around the numbers
  // Not if the numbers are those of an answer.
  {
    kind: 'context',
    pattern:
      /^(?!.*(output|completion|max_tokens|budget_tokens|thinking))(.*\D)?\d[\d,]* (input |prompt )?tokens? (exceeds?|>|is (more|greater|larger) than) (the )?(limit|maximum|max|\d)/is,
  },
  // vLLM
  { kind: 'context', pattern: /longer than the maximum model length/i },
  // vLLM
  { kind: 'context', pattern: /too long to fit into the model/i },
  // OpenAI-compatible servers
  { kind: 'context', pattern: /exceeds (the )?model's context length/i },
  // SGLang
  {
    kind: 'context',
    pattern:
      /longer than (the )?(model|maximum|max)('s)?( allowed)? (context|input|sequence)( length| window| size)?/i,
  },
  // SGLang, Volcano Ark, LM Studio
  {
    kind: 'context',
    pattern: /input length \(?[\d,]+( tokens)?\)? exceeds (the )?(maximum|model|context)/i,
  },
  // Bedrock
  {
    kind: 'context',
    pattern:
      /(input|prompt|request|conversation|context)( (tokens?|length|text|messages?|size))? (is|are|was) too (long|large|big) for/i,
  },
  // Kimi, MiniMax, Copilot, Zhipu, llama-cpp-python
  {
    kind: 'context',
    pattern:
      /(exceed(s|ed|ing)?|over|above|beyond) (the )?(model'?s? |maximum |max |allowed )*(context|token|input|prompt|sequence)s?( (token|length|window|size|context))* (limit|length|window|size|maximum)/i,
  },
  // MiniMax
  {
    kind: 'context',
    pattern:
      /(context|prompt|input|sequence)( (window|length|size|tokens?|count))+ (of [\d,]+ )?(exceeds?|is (larger|greater|longer|more) than) (the )?(max|maximum|limit|allowed|model)/i,
  },
  // Copilot
  { kind: 'context', pattern: /prompt token count of [\d,]+ exceeds/i },
  // Cohere
  { kind: 'context', pattern: /number of tokens in the (prompt|input|request|messages) exceeds/i },
  // Cohere
  { kind: 'context', pattern: /total tokens exceeds? (the )?model'?s? max/i },
  // Zhipu
  {
    kind: 'context',
    pattern:
      /(prompt|input) exceeds (the )?max(imum)?( input| prompt| context)? (length|tokens|size)/i,
  },
  // Cohere, Mistral
  {
    kind: 'context',
    pattern:
      /too many (input |prompt )?tokens\b(?!: max tokens)(?!.{0,60}per (minute|min|day|hour|second))/i,
  },
  // Groq, Cerebras
  { kind: 'context', pattern: /reduce the length of the (messages|input prompt)/i },
  // Gemini
  { kind: 'context', pattern: /input token count .{0,40}exceeds the maximum number of tokens/i },
  // llama.cpp
  { kind: 'context', pattern: /exceeds? the (available )?context (size|length)/i },
  // LM Studio
  { kind: 'context', pattern: /greater than the context length/i },
  // xAI
  { kind: 'context', pattern: /maximum prompt length is \d+/i },
  // Qwen
  { kind: 'context', pattern: /range of input length should be/i },
  // Text Generation Inference, Together
  { kind: 'context', pattern: /tokens \+ `?max_new_tokens`? must be/i },
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
