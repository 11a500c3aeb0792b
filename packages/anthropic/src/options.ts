import { isObject, isRecord, oneOf, type Rule, wholeNumber } from '@millrace/core/adapter';
import { type JsonRecord, settingsRules, type VendorSettings } from '@millrace/wire';
import type { CacheTime } from './cache-marks.js';
import type { Effort } from './messages-request.js';
import type { Thinking } from './thinking.js';

/** How a model of Anthropic is reached and asked. A `/v1` at the end of `baseUrl` counts for nothing. */
export interface AnthropicOptions extends VendorSettings {
  /** Tokens that an answer may have where the request does not say. Default: 32,000, or what an older model has. */
  readonly maxTokens?: number | undefined;
  /** How the model thinks before it answers. Default: as the API has it for the model. */
  readonly thinking?: Thinking | undefined;
  /** How much work the model puts into an answer. Default: as the API has it. */
  readonly effort?: Effort | undefined;
  /**
   * Whether, and for how long, the vendor caches what a request has in common with the next. Default: true, which
   * is `5m`.
   */
  readonly cache?: boolean | CacheTime | undefined;
  /**
   * Tools that run at the vendor, as it declares them: `{ type: 'web_search_20260318', name: 'web_search' }`.
   * Default: none.
   */
  readonly builtInTools?: readonly JsonRecord[] | undefined;
  /** Names of beta features to switch on. Default: none. */
  readonly betas?: readonly string[] | undefined;
  /** Fields of the request that there is no option for. They go before all others. */
  readonly body?: JsonRecord | undefined;
}

/** What each option may be. */
export const optionRules: Readonly<Record<keyof AnthropicOptions, Rule>> = {
  ...settingsRules,
  maxTokens: wholeNumber(1),
  thinking: [
    (value) => isThinking(value),
    `false, 'adaptive' or { budgetTokens: 1024 } or more (see 'effort')`,
  ],
  effort: oneOf('low', 'medium', 'high', 'xhigh', 'max'),
  cache: [
    (value) => typeof value === 'boolean' || value === '5m' || value === '1h',
    `true, false, '5m' or '1h'`,
  ],
  builtInTools: [
    (value) => isListOf(value, isBuiltIn),
    `a list of tools as the vendor declares them, such as { type: 'web_search_20260318', name: 'web_search' }`,
  ],
  betas: [
    (value) => isListOf(value, (beta) => typeof beta === 'string'),
    'a list of names of beta features',
  ],
  body: isObject,
};

/** The API takes no smaller budget. */
const minBudget = 1_024;

const isThinking = (value: unknown): boolean =>
  value === false || value === 'adaptive' || (isRecord(value) && isBudget(value));

const isBudget = ({ budgetTokens, ...others }: JsonRecord): boolean =>
  Number.isInteger(budgetTokens) &&
  Number(budgetTokens) >= minBudget &&
  Object.keys(others).length === 0;

const isBuiltIn = (tool: unknown): boolean => isRecord(tool) && typeof tool['type'] === 'string';

const isListOf = (value: unknown, isOne: (item: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isOne);
