import { describe, expect, it } from '@jest/globals';
import { moneyFor, priceOf } from './prices.js';

const price = (input: number) => ({ input, output: 0 });

describe('prices', () => {
  it('C9: the name of a model precedes the longest pattern, and that precedes shorter ones', () => {
    const prices = {
      'gpt-5': price(1),
      'gpt-5*': price(2),
      'openai/*': price(3),
      'openai/gpt-5*': price(4),
      '*': price(5),
    };
    const found = (model: string) => priceOf(prices, model)?.input;
    expect(found('gpt-5')).toBe(1);
    expect(found('gpt-5-mini')).toBe(2);
    expect(found('openai/o3')).toBe(3);
    expect(found('openai/gpt-5-mini')).toBe(4);
    expect(found('claude')).toBe(5);
  });

  it('C9: an unknown model has no price, also if it is named like a property of objects', () => {
    expect(priceOf({ 'gpt-5': price(1) }, 'gpt-5-mini')).toBeUndefined();
    expect(priceOf({}, 'toString')).toBeUndefined();
    expect(priceOf({ 'a*': price(1) }, '__proto__')).toBeUndefined();
  });

  it('C9: cached tokens have the price of input, unless they have their own', () => {
    const usage = { inputTokens: 1, outputTokens: 2, cacheReadTokens: 4, cacheWriteTokens: 8 };
    expect(moneyFor(usage, { input: 1e6, output: 3e6 })).toBe(19);
    expect(moneyFor(usage, { input: 1e6, output: 3e6, cacheRead: 0, cacheWrite: 2e6 })).toBe(23);
  });
});
