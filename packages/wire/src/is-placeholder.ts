/** Words that people use as a key if the server needs none, or before they fill in the real one. */
const words: ReadonlySet<string> = new Set(
  `a add ai anthropic any anything api apikey bearer change changeme credential dummy empty example fake foo bar free
   gemini google goes groq here insert is key llama llamacpp llm lm local localhost me mistral model my needed no none
   not nothing null ollama openai openrouter or password paste placeholder put real replace required secret server
   sk some studio test testing the this to token undefined unused use used value vllm with your`.split(
    /\s+/u,
  ),
);

/**
 * Whether a key is a placeholder: it consists of such words only, as `ollama`, `lm-studio`, `sk-no-key-required` and
 * `YOUR_API_KEY` do, or it is one word of fewer than 8 letters in one case.
 */
export const isPlaceholder = (secret: string): boolean =>
  /^(?:[A-Z]?[a-z]{1,6}|[a-z]{7}|[A-Z]{1,7})$/u.test(secret) ||
  (secret.toLowerCase().match(/[\p{L}\d]+/gu) ?? [secret]).every(
    (word) => words.has(word) || /^x+$/u.test(word),
  );
