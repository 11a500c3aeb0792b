import { MillraceError, type ModelContext, type retry } from 'millrace';
import {
  checkOptions,
  isFlag,
  isFunction,
  isObject,
  isRecord,
  isText,
  type Rule,
} from 'millrace/values';
import type { Caps } from './caps.js';
import { inSentence } from './address.js';

/** An API key, or a function that is called for each request and returns one. */
export type ApiKey = string | (() => string | PromiseLike<string>);

/** Options that the models of all vendors have. */
export interface VendorSettings {
  /** Default: the environment variable of the vendor. A function is called for each request. */
  readonly apiKey?: ApiKey | undefined;
  /** The base URL. Default: the environment variable of the vendor, else its public URL. */
  readonly baseURL?: string | undefined;
  /** Headers of every request. They override all others. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The `fetch` for requests. Default: the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
  /** How to retry failed requests; `false` disables retries. Default: the defaults of `retry()`. */
  readonly retry?: false | Parameters<typeof retry>[1];
  /**
   * How long the vendor may be silent. Default: 2 minutes before the first content, then 60 seconds. No upper limit.
   */
  readonly timeouts?: ModelContext['timeouts'] | undefined;
  /** Size limits of an answer. Default: `defaultCaps`, for each cap that is not set. */
  readonly caps?: Partial<Caps> | undefined;
  /**
   * Whether requests with a key may be sent from a browser. **Everyone who opens the page can read that key, and use it at
   * your expense.** Set it only for keys that users enter themselves, and for tokens that are short-lived and limited; in
   * every other case, let the page call your server. Requests without a key do not need it. Default: false.
   */
  readonly dangerouslyAllowBrowser?: boolean | undefined;
}

/** Validation rules of the settings. The code that uses the last three checks their fields. */
export const settingsRules: Readonly<Record<keyof VendorSettings, Rule>> = {
  apiKey: [(key) => typeof key === 'string' || typeof key === 'function', 'a string or a function'],
  baseURL: isText,
  headers: [(headers) => isHeaders(headers), 'an object of strings'],
  fetch: isFunction,
  retry: [(retry) => retry === false || isRecord(retry), 'false or an object of options'],
  timeouts: isObject,
  caps: isObject,
  dangerouslyAllowBrowser: isFlag,
};

/** A `Headers` or a `Map` would look like an empty object. */
const isHeaders = (headers: unknown): boolean =>
  isRecord(headers) &&
  !(Symbol.iterator in headers) &&
  Object.values(headers).every((value) => typeof value === 'string');

/** The arguments of a function that creates a model, such as `openai(model, options)`. */
export interface ModelCall {
  /** The name of the vendor in errors. */
  readonly vendor: string;
  /** The name of one of its models, for the error about a missing name. Default: none is named. */
  readonly example?: string | undefined;
  readonly model: unknown;
  readonly options: unknown;
  /** Validation rules of all options: `settingsRules` and those of the vendor. */
  readonly rules: Readonly<Record<string, Rule>>;
  /** Explains an unknown option. Default: the error lists the known ones. */
  readonly hint?: (name: string, known: readonly string[]) => string | undefined;
}

/**
 * Validates the name and options of a model. Throws a `MillraceError` (`config`) for a missing name and for an unknown
 * (perhaps misspelled) or invalid option. The message contains no value of `apiKey` or `headers`.
 */
export const checkModelCall = (call: ModelCall): void => {
  const { vendor, example, model, options, rules, hint } = call;
  if (typeof model !== 'string' || model.trim() === '') {
    throw new MillraceError(
      'config',
      `A model of ${inSentence(vendor)} needs a name${example === undefined ? '' : `, such as '${example}'`}.`,
    );
  }
  const owner = `The model '${model}'`;
  const known = Object.keys(rules);
  for (const name of isRecord(options) ? Object.keys(options) : []) {
    const found = known.includes(name) ? undefined : hint?.(name, known);
    if (found) throw new MillraceError('config', `${owner} has no option '${name}'. ${found}`);
  }
  checkOptions(owner, withoutStringHeaders(options), rules);
};

/** The error for a string in place of headers would show it, and it may contain a key. */
const withoutStringHeaders = (options: unknown): unknown =>
  isRecord(options) && typeof options['headers'] === 'string'
    ? { ...options, headers: [] }
    : options;
