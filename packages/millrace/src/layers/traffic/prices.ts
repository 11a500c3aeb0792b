import { MillraceError } from '../../values/errors.js';
import { checkOptions, numberFrom, type Rule } from '../../values/options.js';
import type { Usage } from '../../values/usage.js';

/** The price of a million tokens of a model, in any currency. Reasoning tokens are output. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Input read from the cache. Default: the price of `input`. */
  readonly cacheRead?: number;
  /** Input written to the cache. Default: the price of `input`. */
  readonly cacheWrite?: number;
}

/**
 * Prices by model name, as events report it. A name that ends with `*` applies to all models that start with the rest, such as
 * `openai/*`; the longest one wins, and `*` alone applies to all other models.
 */
export type PriceTable = Readonly<Record<string, Price>>;

/** Throws `config` if a price is invalid. */
export const checkPrices = (owner: string, prices: object): void => {
  for (const [model, price] of Object.entries(prices)) {
    checkOptions(`${owner}: the price of '${model}'`, price, priceRules, ['input', 'output']);
  }
};

const priceRules: Readonly<Record<keyof Price, Rule>> = {
  input: numberFrom(0),
  output: numberFrom(0),
  cacheRead: numberFrom(0),
  cacheWrite: numberFrom(0),
};

/** Returns the price of a model, or undefined if it is unknown, which is not 0. */
export const priceOf = (prices: PriceTable, model: string): Price | undefined => {
  if (Object.hasOwn(prices, model)) return prices[model];
  const [longest] = Object.keys(prices)
    .filter((name) => name.endsWith('*') && model.startsWith(name.slice(0, -1)))
    .sort((a, b) => b.length - a.length);
  return longest === undefined ? undefined : prices[longest];
};

/** The price of a model. Throws `config` without one: the budget would count it as free. */
export const requirePrice = (prices: PriceTable, model: string): Price => {
  const price = priceOf(prices, model);
  if (price !== undefined) return price;
  throw new MillraceError(
    'config',
    `The budget has no price for the model '${model}'. Add '${model}' to 'prices', or '*' for all other models. Prices: ${Object.keys(prices).join(', ')}.`,
  );
};

export const moneyFor = (usage: Usage, price: Price): number => {
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
