import { checkOptions, isFunction, type Rule } from '../options.js';
import {
  type Calibration,
  calibrated,
  factorOf,
  type TokenSample,
  uncalibrated,
} from './calibration.js';
import { estimateText } from './estimate-tokens.js';

/**
 * Counts tokens. A tokenizer needs `count` alone: `{ count: (text) => encode(text).length }`. What calibrates itself has all three.
 */
export interface TokenCounter {
  /** The tokens of a text, 0 or more: of the same text always the same, whatever has been learned. */
  count(text: string): number;
  /** What a count is to be multiplied by for the model of this name. Default: 1. */
  factor?(model: string): number;
  /** Is told what a request was counted as, and what it was. */
  learn?(sample: TokenSample): void;
}

/** What a counter that calibrates itself is made of. */
export interface TokenCounterOptions {
  /** What counts before anything is learned. Default: `estimateTokens` with a rule for JSON, code, digits, CJK and emoji. */
  readonly count?: (text: string) => number;
}

/**
 * Makes a counter that calibrates itself, model by model, by the usage that providers report: after three requests its factor is theirs, and it stays
 * between 0.5 and 2. Whoever shares it shares what it has learned.
 */
export const createTokenCounter = (options: TokenCounterOptions = {}): TokenCounter => {
  checkOptions('createTokenCounter()', options, rules);
  const { count = estimateText } = options;
  const learned = new Map<string, Calibration>();
  const of = (model: string): Calibration => learned.get(model) ?? uncalibrated;
  return {
    count,
    factor: (model) => factorOf(of(model)),
    learn: (sample) => {
      learned.set(sample.model, calibrated(of(sample.model), sample));
    },
  };
};

/** The default counter, without a memory: what has to be decided alike each time is decided by it. */
export const plainCounter: TokenCounter = Object.freeze({ count: estimateText });

const rules: Readonly<Record<keyof TokenCounterOptions, Rule>> = { count: isFunction };
