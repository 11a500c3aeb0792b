import { misuse } from '../../values/errors.js';
import { isRecord } from '../../values/json.js';
import { checkOptions, type Rule } from '../../values/options.js';
import { type PriceList, readPriceList } from './cost.js';
import type { Price, PriceTable } from './prices.js';

/**
 * Makes a price list in US dollars from an open table that you downloaded: `https://models.dev/api.json`, or LiteLLM's
 * `model_prices_and_context_window.json`. The list has the models of one provider, by the names that its API takes. Models without
 * a price of both input and output tokens are left out, and prices by the size of a request are not read. Throws `config` if the
 * table has no price of the provider.
 *
 * @example
 * ```ts
 * const table: unknown = JSON.parse(readFileSync('api.json', 'utf8'));
 * const use = [cost(importPrices(table, { provider: 'openai', date: '2026-11-30' }))];
 * ```
 */
export const importPrices = (
  table: unknown,
  options: {
    /** The provider in the table, such as `openai`, `anthropic` or `openrouter`. */
    readonly provider: string;
    /** The day on which you downloaded the table, such as `2026-11-30`: the table has no date. */
    readonly date: string;
  },
): PriceList => {
  checkOptions('importPrices()', options, rules, ['provider', 'date']);
  const { provider, date } = options;
  if (!isRecord(table)) {
    const what = typeof table === 'string' ? 'a string: parse it first' : 'this';
    throw misuse(`importPrices() needs the JSON object of a table, not ${what}.`);
  }
  const found = Object.hasOwn(table, provider) ? table[provider] : undefined;
  const prices =
    isRecord(found) && isRecord(found['models'])
      ? pricesIn(found['models'], modelsDevPrice)
      : pricesIn(liteLlmModels(table, provider), liteLlmPrice);
  if (Object.keys(prices).length === 0) throw noPrice(table, provider);
  return readPriceList({ currency: 'USD', date, prices }, 'importPrices()');
};

const filled: Rule = [
  (value) => typeof value === 'string' && value !== '',
  'a string that is not empty',
];

const rules: Readonly<Record<string, Rule>> = { provider: filled, date: filled };

type Fields = Readonly<Record<string, unknown>>;

const pricesIn = (models: Fields, priceIn: (model: Fields) => Price | undefined): PriceTable =>
  Object.fromEntries(
    Object.entries(models).flatMap(([name, model]) => {
      const price = isRecord(model) ? priceIn(model) : undefined;
      return price === undefined ? [] : [[name, price]];
    }),
  );

/** `{ openai: { models: { 'gpt-5-mini': { cost: { input: 0.25, output: 2 } } } } }`, for a million tokens. */
const modelsDevPrice = ({ cost }: Fields): Price | undefined =>
  isRecord(cost)
    ? priceFrom(cost['input'], cost['output'], cost['cache_read'], cost['cache_write'])
    : undefined;

/** `{ 'groq/llama': { litellm_provider: 'groq', input_cost_per_token: 1e-7, output_cost_per_token: 2e-7 } }`. */
const liteLlmPrice = (model: Fields): Price | undefined => {
  const perMillion = (field: string): unknown => {
    const value = model[field];
    // 2.5e-8 * 1e6 is 0.024999999999999998.
    return typeof value === 'number' ? Number((value * 1e6).toPrecision(12)) : undefined;
  };
  return priceFrom(
    perMillion('input_cost_per_token'),
    perMillion('output_cost_per_token'),
    perMillion('cache_read_input_token_cost'),
    perMillion('cache_creation_input_token_cost'),
  );
};

const priceFrom = (
  input: unknown,
  output: unknown,
  cacheRead: unknown,
  cacheWrite: unknown,
): Price | undefined =>
  isPrice(input) && isPrice(output)
    ? {
        ...{ input, output },
        ...(isPrice(cacheRead) && { cacheRead }),
        ...(isPrice(cacheWrite) && { cacheWrite }),
      }
    : undefined;

const isPrice = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;

/** A name without the provider takes precedence over one with it. */
const liteLlmModels = (table: Fields, provider: string): Fields => {
  const own = Object.entries(table).filter(([, model]) => providerOf(model) === provider);
  const prefix = `${provider}/`;
  const short = own.flatMap(([name, model]) =>
    name.startsWith(prefix) ? [[name.slice(prefix.length), model] as const] : [],
  );
  return Object.fromEntries([...short, ...own.filter(([name]) => !name.startsWith(prefix))]);
};

const providerOf = (model: unknown): unknown =>
  isRecord(model) ? model['litellm_provider'] : undefined;

const noPrice = (table: Fields, provider: string): Error => {
  const names = Object.entries(table).flatMap(([name, it]) => {
    const found = isRecord(it) && isRecord(it['models']) ? name : providerOf(it);
    // The first entry of LiteLLM's describes the fields.
    return typeof found === 'string' && !found.includes(' ') ? [found] : [];
  });
  const known = [...new Set(names)].slice(0, 30).join(', ');
  const fix =
    known === ''
      ? "Pass models.dev's api.json, or LiteLLM's model_prices_and_context_window.json."
      : `It has prices of: ${known}.`;
  return misuse(`importPrices(): the table has no price of the provider '${provider}'. ${fix}`);
};
