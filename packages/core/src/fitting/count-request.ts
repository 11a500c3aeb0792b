import { misuse } from '../errors.js';
import type { Block, Message } from '../message.js';
import type { ModelRequest } from '../model.js';
import type { TokenCounter } from './token-counter.js';

export type CountedRequest = Partial<
  Pick<ModelRequest, 'system' | 'tools' | 'messages' | 'outputSchema'>
>;

/** Tokens before a factor, and those that no factor is for. */
export interface Weight {
  /** Of texts, JSON and what frames them, by the counter. */
  readonly text: number;
  readonly media: number;
}

/** What a picture, a recording or a document is taken to cost: vendors count them by sizes that are not known here. */
export const mediaTokens = 1_000;

/** What frames each message: three tokens and its role, as OpenAI's cookbook counts for its chat format ("How to count tokens with tiktoken", `tokens_per_message`); three more begin the answer. Other vendors are near it. */
const messageTokens = 4;
const answerTokens = 3;

/** Counts what a request costs, in tokens: its messages, its system prompt, its tools and the schema of its answer, both as JSON. */
export const countRequest = (
  counter: TokenCounter,
  request: CountedRequest,
  model?: string,
): number => costOf(weighRequest(counter, request), factorFor(counter, model));

export const countMessages = (
  counter: TokenCounter,
  messages: readonly Message[],
  model?: string,
): number => {
  const factor = factorFor(counter, model);
  return messages.reduce((sum, message) => sum + costOf(weigh(counter, message), factor), 0);
};

export const factorFor = (counter: TokenCounter, model: string | undefined): number =>
  model === undefined ? 1 : (counter.factor?.(model) ?? 1);

/** Whole tokens, so that a sum is the same in whatever order it is made. */
export const costOf = ({ text, media }: Weight, factor: number): number =>
  Math.ceil(text * factor) + media;

export const weighRequest = (
  counter: TokenCounter,
  { system, tools = [], messages = [], outputSchema }: CountedRequest,
): Weight => {
  const declared = outputSchema === undefined ? tools : [...tools, outputSchema];
  return sumOf([
    { text: answerTokens + (system === undefined ? 0 : messageTokens), media: 0 },
    textWeight(counter, system ?? ''),
    ...declared.map((part) => once(counter, part, () => textWeight(counter, JSON.stringify(part)))),
    ...messages.map((message) => weigh(counter, message)),
  ]);
};

export const weigh = (counter: TokenCounter, message: Message): Weight =>
  once(counter, message, () =>
    sumOf([{ text: messageTokens, media: 0 }, ...blockWeights(counter, message.content)]),
  );

const weights = new WeakMap<TokenCounter, WeakMap<object, Weight>>();

/** What does not change is weighed once by each counter: requests show their messages and tools again and again. */
const once = (counter: TokenCounter, part: object, weighed: () => Weight): Weight => {
  if (!Object.isFrozen(part)) return weighed();
  let known = weights.get(counter);
  if (known === undefined) weights.set(counter, (known = new WeakMap<object, Weight>()));
  const before = known.get(part);
  if (before !== undefined) return before;
  const weight = weighed();
  known.set(part, weight);
  return weight;
};

const blockWeights = (counter: TokenCounter, blocks: readonly Block[]): readonly Weight[] =>
  blocks.map((block) => blockWeight(counter, block));

const blockWeight = (counter: TokenCounter, block: Block): Weight => {
  switch (block.type) {
    case 'text':
    case 'thinking':
      return textWeight(counter, block.text);
    case 'tool_use':
      return sumOf([
        textWeight(counter, block.name),
        textWeight(counter, block.invalidInput ?? JSON.stringify(block.input)),
      ]);
    case 'tool_result':
      return sumOf([
        textWeight(counter, block.note ?? ''),
        ...blockWeights(counter, block.content),
      ]);
    default:
      return { text: 0, media: mediaTokens };
  }
};

const textWeight = (counter: TokenCounter, text: string): Weight => ({
  text: text === '' ? 0 : checked(counter.count(text)),
  media: 0,
});

/** Checked, because a counter is foreign code: with no number, everything would seem to fit. */
const checked = (count: number): number => {
  if (Number.isFinite(count) && count >= 0) return count;
  throw misuse(`A token counter gave ${String(count)}: return 0 or more.`);
};

const sumOf = (parts: readonly Weight[]): Weight => {
  let text = 0;
  let media = 0;
  for (const part of parts) {
    text += part.text;
    media += part.media;
  }
  return { text, media };
};
