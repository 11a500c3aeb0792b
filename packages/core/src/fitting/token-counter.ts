import { estimateText } from './estimate-tokens.js';

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
export interface TokenSample {
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
