import { MillraceError } from '@millrace/core';
import type { VendorSettings } from '@millrace/wire';
import type { CacheTime } from './cache-marks.js';
import type { Effort, JsonRecord } from './messages-request.js';
import type { Thinking } from './thinking.js';

/** A key, or what gives one for each request. */
export type ApiKey = string | (() => string | PromiseLike<string>);

/** How a model of Anthropic is reached and asked. */
export interface AnthropicOptions extends VendorSettings {
  /** Default: `ANTHROPIC_API_KEY`, then `ANTHROPIC_AUTH_TOKEN`. A function is asked for each request. */
  readonly apiKey?: ApiKey;
  /** Where the API is, without `/v1`. Default: `ANTHROPIC_BASE_URL`, then the vendor's own. */
  readonly baseUrl?: string;
  /** Headers that every request has. They go before all others. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What does the requests. Default: the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** Tokens that an answer may have where the request does not say. Default: 32,000. */
  readonly maxTokens?: number;
  /** How the model thinks before it answers. Default: as the API has it for the model. */
  readonly thinking?: Thinking;
  /** How much work the model puts into an answer. Default: as the API has it. */
  readonly effort?: Effort;
  /**
   * Whether, and for how long, the vendor caches what a request has in common with the next. Default: true, which
   * is `5m`.
   */
  readonly cache?: boolean | CacheTime;
  /**
   * Tools that run at the vendor, as it declares them: `{ type: 'web_search_20260318', name: 'web_search' }`.
   * Default: none.
   */
  readonly builtInTools?: readonly JsonRecord[];
  /** Names of beta features to switch on. Default: none. */
  readonly betas?: readonly string[];
  /** Fields of the request that there is no option for. They go before all others. */
  readonly body?: JsonRecord;
}

const names: Readonly<Record<keyof AnthropicOptions, true>> = {
  apiKey: true,
  baseUrl: true,
  headers: true,
  fetch: true,
  maxTokens: true,
  thinking: true,
  effort: true,
  cache: true,
  builtInTools: true,
  betas: true,
  body: true,
  retry: true,
  timeouts: true,
  caps: true,
};

/**
 * Refuses a model without a name, a number that cannot be, and an option that there is not: a misspelt one must not
 * be passed over.
 */
export const checkCall = (model: unknown, options: AnthropicOptions): void => {
  if (typeof model !== 'string' || model.trim() === '') {
    throw misuse(`A model of Anthropic needs a name, such as 'claude-sonnet-4-5'.`);
  }
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (unknown !== undefined) {
    throw misuse(
      `anthropic() has no option '${unknown}'. Its options are: ${Object.keys(names).join(', ')}.`,
    );
  }
  const { maxTokens = 1 } = options;
  if (!Number.isInteger(maxTokens) || maxTokens < 1) {
    throw misuse(
      `The option 'maxTokens' takes a whole number of at least 1, and not ${maxTokens}.`,
    );
  }
};

const misuse = (message: string): MillraceError => new MillraceError('config', message);
