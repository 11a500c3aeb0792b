import { MillraceError, type ModelTimeouts, type RetryOptions } from '@millrace/core';
import {
  checkOptions,
  isFunction,
  isObject,
  isRecord,
  isText,
  type Rule,
} from '@millrace/core/adapter';
import type { Caps } from './caps.js';
import { inside } from './inside.js';

/** A key, or what gives one for each request. */
export type ApiKey = string | (() => string | PromiseLike<string>);

/** What everybody may set of a vendor's model. */
export interface VendorSettings {
  /** Default: the environment variable of the vendor. A function is asked for each request. */
  readonly apiKey?: ApiKey | undefined;
  /** Where the vendor is. Default: its environment variable, else its own address. */
  readonly baseUrl?: string | undefined;
  /** Headers that every request has. They go before all others. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** What does the requests. Default: the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
  /** How failed requests are sent again; `false` sends each once. Default: as `retry()` does. */
  readonly retry?: false | RetryOptions | undefined;
  /** How long the vendor may be silent. Default: 2 minutes before the first content, 60 seconds after it. Longer waits work, too. */
  readonly timeouts?: ModelTimeouts | undefined;
  /** What is not set of the caps is as in `defaultCaps`. */
  readonly caps?: Partial<Caps> | undefined;
}

/** What each of the settings may be. What is in the last three is checked by those who use it. */
export const settingsRules: Readonly<Record<keyof VendorSettings, Rule>> = {
  apiKey: [(key) => typeof key === 'string' || typeof key === 'function', 'a text or a function'],
  baseUrl: isText,
  headers: [(headers) => isHeaders(headers), 'an object of names and texts'],
  fetch: isFunction,
  retry: [(retry) => retry === false || isRecord(retry), 'false or an object of options'],
  timeouts: isObject,
  caps: isObject,
};

/** A `Headers` or a `Map` looks like an object with nothing in it. */
const isHeaders = (headers: unknown): boolean =>
  isRecord(headers) &&
  !(Symbol.iterator in headers) &&
  Object.values(headers).every((value) => typeof value === 'string');

/** A model that somebody asks a vendor for. */
export interface ModelCall {
  /** What errors call the vendor. */
  readonly vendor: string;
  /** The name of one of its models, for the error of a call without one. */
  readonly example: string;
  readonly model: unknown;
  readonly options: unknown;
  /** What each option of the vendor may be: `settingsRules` and its own. */
  readonly rules: Readonly<Record<string, Rule>>;
}

/**
 * Refuses a model without a name, an option that there is not, and one that cannot be what it is: a misspelt one must
 * not be passed over. Throws a `MillraceError` (`config`) that holds no value of `apiKey` or `headers`.
 */
export const checkModelCall = ({ vendor, example, model, options, rules }: ModelCall): void => {
  if (typeof model !== 'string' || model.trim() === '') {
    throw new MillraceError(
      'config',
      `A model of ${inside(vendor)} needs a name, such as '${example}'.`,
    );
  }
  checkOptions(`The model '${model}'`, withoutText(options), rules);
};

/** The error for a text in place of headers would show it, and it may hold a key. */
const withoutText = (options: unknown): unknown =>
  isRecord(options) && typeof options['headers'] === 'string'
    ? { ...options, headers: [] }
    : options;
