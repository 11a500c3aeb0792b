import { isObject, isRecord, oneOf, type Rule, wholeNumber } from 'millrace/values';
import { type JsonRecord, settingsRules, type VendorSettings } from '@millrace/wire';
import type { CacheTime } from './cache-marks.js';
import type { Effort } from './messages-request.js';
import type { Thinking } from './thinking.js';

/** Options of a model of Anthropic. A `/v1` at the end of `baseURL` is removed. */
export interface AnthropicOptions extends VendorSettings {
  /** The default of the request's `maxTokens`. Default: 32,000, or the lower limit of an older model. */
  readonly maxTokens?: number | undefined;
  /** How the model thinks before it answers. Default: the API's default for the model. */
  readonly thinking?: Thinking | undefined;
  /** How much effort the model puts into an answer. Default: the API's default. */
  readonly effort?: Effort | undefined;
  /** Whether to use the vendor's prompt cache, and the lifetime of its entries. Default: true, which means `5m`. */
  readonly cache?: boolean | CacheTime | undefined;
  /** Tools that the vendor runs, such as `{ type: 'web_search_20260318', name: 'web_search' }`. Default: none. */
  readonly builtInTools?: readonly JsonRecord[] | undefined;
  /** Names of beta features to enable. Default: none. */
  readonly betas?: readonly string[] | undefined;
  /**
   * Further fields of the request. Objects are merged one level deep and lists united with those that Millrace sends; any
   * other field overrides.
   */
  readonly body?: JsonRecord | undefined;
}

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
    `a list of tools in the format of the vendor, such as { type: 'web_search_20260318', name: 'web_search' }`,
  ],
  betas: [
    (value) => isListOf(value, (beta) => typeof beta === 'string'),
    'a list of names of beta features',
  ],
  body: isObject,
};

/** The API's minimum. */
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
