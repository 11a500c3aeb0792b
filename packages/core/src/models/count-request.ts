import { misuse } from '../values/errors.js';
import type { Block, Message } from '../values/message.js';
import { estimateText } from './estimate-tokens.js';
import type { ModelRequest } from './model.js';

type CountedRequest = Partial<Pick<ModelRequest, 'system' | 'tools' | 'messages' | 'outputSchema'>>;

/** Tokens before a factor, and those that no factor is for. */
interface Weight {
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

/** Counts tokens. A tokenizer needs `count` alone: `{ count: (text) => encode(text).length }`. What calibrates itself has all three. */
export interface TokenCounter {
  /** The tokens of a text, 0 or more: of the same text always the same, whatever has been learned. */
  count(text: string): number;
  /** What a count is to be multiplied by for the model of this name. Default: 1. */
  factor?(model: string): number;
  /** Is told what a request was counted as, and what it was. */
  learn?(sample: TokenSample): void;
}

/** Makes a counter that calibrates itself, model by model, by the usage that providers report: after three requests its factor is theirs, and it stays between 0.5 and 2. Whoever shares it shares what it has learned. */
export const createTokenCounter = (): TokenCounter => {
  const learned = new Map<string, Calibration>();
  const of = (model: string): Calibration => learned.get(model) ?? uncalibrated;
  return {
    count: estimateText,
    factor: (model) => factorOf(of(model)),
    learn: (sample) => {
      learned.set(sample.model, calibrated(of(sample.model), sample));
    },
  };
};

/** The default counter, without a memory: what has to be decided alike each time is decided by it. */
export const plainCounter: TokenCounter = Object.freeze({ count: estimateText });

/** What a request was taken to cost, and what the provider counted. */
interface TokenSample {
  /** By the counter, before what it has learned. */
  readonly estimated: number;
  /** By the provider, with all that its cache gave or took. */
  readonly actual: number;
  readonly model: string;
}

/** What has been learned of one model's tokens: how many of them an estimated one was in the latest requests, oldest first. */
export interface Calibration {
  readonly ratios: readonly number[];
}

/** Nothing learned: two requests as they were estimated, so that the first sample alone proves nothing. */
export const uncalibrated: Calibration = { ratios: [1, 1] };

const memory = 9;

/** Of a smaller request, what a vendor adds to each says more than its texts. */
const leastEstimate = 200;

const least = 0.5;
const most = 2;

/** Adds a sample. One says nothing that is too small, or that has less than half of what was estimated: there, the provider has not counted what its cache held. */
export const calibrated = (
  before: Calibration,
  { estimated, actual }: Pick<TokenSample, 'estimated' | 'actual'>,
): Calibration => {
  const ratio = actual / estimated;
  const isTelling = estimated >= leastEstimate && ratio >= least && Number.isFinite(ratio);
  if (!isTelling) return before;
  return { ratios: [...before.ratios, Math.min(ratio, most)].slice(-memory) };
};

/** What an estimate is to be multiplied by, from 0.5 to 2: the median of the latest requests, which up to four odd ones of nine do not move beyond the others. */
export const factorOf = ({ ratios }: Calibration): number => {
  const sorted = [...ratios].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const low = sorted[Math.ceil(middle) - 1] ?? 1;
  const high = sorted[Math.floor(middle)] ?? 1;
  return (low + high) / 2;
};
