import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { importPrices, type PriceList } from './index.js';

/** The form of https://models.dev/api.json, with prices that are made up. */
const modelsDev = {
  openai: {
    id: 'openai',
    env: ['OPENAI_API_KEY'],
    npm: '@ai-sdk/openai',
    models: {
      small: {
        id: 'small',
        name: 'Small',
        tool_call: true,
        limit: { context: 400_000, output: 128_000 },
        cost: { input: 0.25, output: 2, cache_read: 0.025 },
      },
      'small-latest': {
        id: 'small-latest',
        cost: { input: 0.5, output: 3, cache_write: 0.6, tiers: [], input_audio: 10 },
      },
      draft: { id: 'draft', cost: { input: 0.5 } },
      open: { id: 'open', open_weights: true },
    },
  },
  anthropic: { id: 'anthropic', models: { large: { cost: { input: 3, output: 15 } } } },
  empty: { id: 'empty', models: {} },
};

/** The form of LiteLLM's model_prices_and_context_window.json. */
const liteLlm = {
  sample_spec: {
    litellm_provider: 'one of https://docs.litellm.ai/docs/providers',
    input_cost_per_token: 0,
    output_cost_per_token: 0,
    max_tokens: 'a text',
  },
  fallback_generalizations: { rules: [] },
  small: {
    litellm_provider: 'openai',
    mode: 'chat',
    input_cost_per_token: 2.5e-7,
    output_cost_per_token: 2e-6,
    cache_read_input_token_cost: 2.5e-8,
    input_cost_per_token_above_200k_tokens: 5e-7,
  },
  'openai/small': {
    litellm_provider: 'openai',
    input_cost_per_token: 9e-7,
    output_cost_per_token: 9e-6,
  },
  drawing: { litellm_provider: 'openai', mode: 'image_generation', output_cost_per_image: 0.04 },
  'groq/llama/8b': {
    litellm_provider: 'groq',
    input_cost_per_token: 1e-7,
    output_cost_per_token: 0,
    cache_creation_input_token_cost: 1.1e-6,
  },
};

const date = '2026-11-30';

describe('importPrices', () => {
  it('C9: reads models.dev: the models of a provider that have a price', () => {
    expect(importPrices(modelsDev, { provider: 'openai', date })).toEqual({
      currency: 'USD',
      date,
      prices: {
        small: { input: 0.25, output: 2, cacheRead: 0.025 },
        'small-latest': { input: 0.5, output: 3, cacheWrite: 0.6 },
      },
    } satisfies PriceList);
  });

  it('C9: reads LiteLLM: prices of a million tokens, by the names of the provider', () => {
    expect(importPrices(liteLlm, { provider: 'openai', date }).prices).toEqual({
      small: { input: 0.25, output: 2, cacheRead: 0.025 },
    });
    expect(importPrices(liteLlm, { provider: 'groq', date }).prices).toEqual({
      'llama/8b': { input: 0.1, output: 0, cacheWrite: 1.1 },
    });
  });

  it.each<[unknown, object, RegExp]>([
    ['{}', {}, /needs the JSON object of a table, not a string: parse it first/],
    [[], {}, /needs the JSON object of a table, not this/],
    [modelsDev, { provider: 'opnai' }, /provider 'opnai'\. It has prices of: openai, anthropic/],
    [modelsDev, { provider: 'empty' }, /no price of the provider 'empty'/],
    [modelsDev, { provider: 'toString' }, /no price of the provider 'toString'/],
    [liteLlm, { provider: 'x' }, /provider 'x'\. It has prices of: openai, groq\.$/],
    [{ a: 1 }, {}, /Pass models\.dev's api\.json, or LiteLLM's/],
    [modelsDev, { date: 'today' }, /'date' must be the day of the prices/],
    [modelsDev, { date: undefined }, /needs 'date'/],
    [modelsDev, { providers: ['openai'] }, /Did you mean 'provider'/],
  ])('C9: a mistake is named: %#', (table, changes, why) => {
    const options = { provider: 'openai', date, ...changes };
    expect(() => importPrices(table, options)).toThrow(why);
  });

  it('C9: any table gives a valid list or a `config` error', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.constantFrom('openai', 'a', '__proto__', 'openai/a'),
          fc.oneof(
            fc.jsonValue(),
            fc.record({
              models: fc.dictionary(
                fc.string(),
                fc.record({
                  cost: fc.dictionary(fc.constantFrom('input', 'output'), fc.jsonValue()),
                }),
              ),
            }),
            fc.record({
              litellm_provider: fc.constant('openai'),
              input_cost_per_token: fc.oneof(fc.double(), fc.jsonValue()),
              output_cost_per_token: fc.double(),
            }),
          ),
        ),
        (table) => {
          try {
            const { prices } = importPrices(table, { provider: 'openai', date });
            expect(Object.values(prices).every(({ input }) => input >= 0)).toBe(true);
          } catch (error) {
            expect(error).toMatchObject({ code: 'config' });
          }
        },
      ),
    );
  });
});
