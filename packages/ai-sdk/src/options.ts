import type { ModelContext, retry } from 'millrace';
import { isObject, isRecord, oneOf, type Rule } from 'millrace/values';
import type { Caps } from '@millrace/wire';
import type { AiSdkTool, ProviderOptions } from './provider-types.js';

/** Settings of the provider interface that Millrace has no option for. An absent one has the vendor's default. */
export interface AiSdkCallSettings {
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly seed?: number | undefined;
  /** How much the model reasons. Only providers of `@ai-sdk/provider` 4 know it. */
  readonly reasoning?:
    | 'provider-default'
    | 'none'
    | 'minimal'
    | 'low'
    | 'medium'
    | 'high'
    | 'xhigh'
    | 'max'
    | undefined;
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Fields by provider, such as `{ google: { thinkingConfig: { includeThoughts: true } } }`. */
  readonly providerOptions?: ProviderOptions | undefined;
}

/** Options of `aiSdkModel`. */
export interface AiSdkModelOptions {
  /** Further settings of every request. Default: none. */
  readonly settings?: AiSdkCallSettings | undefined;
  /** Tools that the vendor runs, by name, such as `{ google_search: google.tools.googleSearch({}) }`. Default: none. */
  readonly builtInTools?: Readonly<Record<string, AiSdkTool>> | undefined;
  /**
   * How a structured answer is requested: `native`, by the vendor's JSON mode, or `tool`, as a tool call. Default: native,
   * and a tool if the request has other tools, because several vendors cannot combine these.
   */
  readonly structuredOutput?: 'native' | 'tool' | undefined;
  /** How to retry failed requests; `false` disables retries. Default: the defaults of `retry()`. */
  readonly retry?: false | Parameters<typeof retry>[1] | undefined;
  /** How long the vendor may be silent. Default: 2 minutes before the first content, then 60 seconds. No upper limit. */
  readonly timeouts?: ModelContext['timeouts'] | undefined;
  /** Size limits of an answer. Default: those of Millrace, for each that is not set. */
  readonly caps?: Partial<Caps> | undefined;
  /**
   * Strings that neither errors nor answers show, such as the key of the provider, which the provider interface hides. Default:
   * the values of environment variables of vendors, such as `XAI_API_KEY` and `AWS_SECRET_ACCESS_KEY`.
   */
  readonly secrets?: readonly string[] | undefined;
}

export const optionRules: Readonly<Record<keyof AiSdkModelOptions, Rule>> = {
  settings: isObject,
  builtInTools: [
    (value) => isRecord(value) && Object.values(value).every(isBuiltIn),
    'tools of a provider by name, such as { google_search: google.tools.googleSearch({}) }',
  ],
  structuredOutput: oneOf('native', 'tool'),
  retry: [(value) => value === false || isRecord(value), 'false or an object of options'],
  timeouts: isObject,
  caps: isObject,
  secrets: [
    (value) => Array.isArray(value) && value.every((it) => typeof it === 'string'),
    'a list of strings',
  ],
};

export const settingRules: Readonly<Record<keyof AiSdkCallSettings, Rule>> = {
  topP: isNumber(),
  topK: isNumber(),
  presencePenalty: isNumber(),
  frequencyPenalty: isNumber(),
  seed: isNumber(),
  reasoning: oneOf('provider-default', 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'),
  headers: isObject,
  providerOptions: isObject,
};

function isNumber(): Rule {
  return [(value) => typeof value === 'number' && Number.isFinite(value), 'a number'];
}

const isBuiltIn = (tool: unknown): boolean =>
  isRecord(tool) &&
  (tool['type'] === 'provider' || tool['type'] === 'provider-defined') &&
  typeof tool['id'] === 'string' &&
  tool['id'].includes('.');
