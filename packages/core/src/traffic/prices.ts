import { MillraceError } from '../errors.js';
import { checkOptions, numberFrom, type Rule } from '../options.js';
import type { Usage } from '../usage.js';

/** What a million tokens of a model cost, in any currency. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Input that was in the cache. Default: as `input`. */
  readonly cacheRead?: number;
  /** Input that was put into it. Default: as `input`. */
  readonly cacheWrite?: number;
}

/** Prices by the names of models, as events call them; one under `*` is for all others. */
export type PriceTable = Readonly<Record<string, Price>>;

/** Refuses prices that are no prices: a budget must not take them for nothing. */
export const checkPrices = (owner: string, prices: PriceTable = {}): void => {
  for (const [model, price] of Object.entries(prices)) {
    checkOptions(`${owner}: the price of '${model}'`, price, rules, ['input', 'output']);
  }
};

const rules: Readonly<Record<keyof Price, Rule>> = {
  input: numberFrom(0),
  output: numberFrom(0),
  cacheRead: numberFrom(0),
  cacheWrite: numberFrom(0),
};

export const priceIn = (model: string, prices: PriceTable): Price | undefined => {
  const name = [model, '*'].find((it) => Object.hasOwn(prices, it));
  return name === undefined ? undefined : prices[name];
};

/** The price of a model, or a `config` error where there is none: a budget must not take it for free. */
export const priceOf = (model: string, prices: PriceTable): Price => {
  const price = priceIn(model, prices);
  if (price !== undefined) return price;
  throw new MillraceError(
    'config',
    `The budget has no price for the model '${model}'. Add '${model}' to 'prices', or '*' for all others. It has: ${Object.keys(prices).join(', ')}.`,
  );
};

export const costOf = (usage: Usage, price: Price): number => {
  const { input, output, cacheRead = input, cacheWrite = input } = price;
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  return (
    (inputTokens * input +
      outputTokens * output +
      cacheReadTokens * cacheRead +
      cacheWriteTokens * cacheWrite) /
    1e6
  );
};
