import { MillraceError } from '@millrace/core';
import type { VendorSettings } from '@millrace/wire';
import type { JsonRecord } from './json.js';
import type { ReasoningEffort } from './profile.js';

/** A key, or what gives one for each request. */
export type ApiKey = string | (() => string | PromiseLike<string>);

/** How a model is reached and asked. */
export interface EndpointOptions extends VendorSettings {
  /** Default: the environment variable of the vendor. A function is asked for each request. */
  readonly apiKey?: ApiKey;
  /** Where the vendor is, up to and including `/v1`. Default: its environment variable, else its own address. */
  readonly baseUrl?: string;
  /** Headers that every request has. They go before all others but the key. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The organization that pays. Default for OpenAI: `OPENAI_ORG_ID`. */
  readonly organization?: string;
  /** The project that pays. Default for OpenAI: `OPENAI_PROJECT_ID`. */
  readonly project?: string;
  /** What does the requests. Default: the global `fetch`. */
  readonly fetch?: typeof fetch;
  readonly reasoningEffort?: ReasoningEffort;
  /** Fields of the request that there is no option for. They go before all others. */
  readonly body?: JsonRecord;
}

/** How a model is reached and asked over the Responses API. */
export interface ResponsesOptions extends EndpointOptions {
  /** Asks for a summary of what the model thinks, to be shown. Default: none is made. */
  readonly reasoningSummary?: 'auto' | 'concise' | 'detailed';
  /** Tools that run at the vendor, as it declares them: `{ type: 'web_search' }`. Default: none. */
  readonly builtInTools?: readonly JsonRecord[];
  /** The vendor keeps what was said. Default: false. */
  readonly store?: boolean;
}

const ofAll: readonly string[] = [
  'apiKey',
  'baseUrl',
  'headers',
  'organization',
  'project',
  'fetch',
  'reasoningEffort',
  'body',
  'retry',
  'timeouts',
  'caps',
];

/** The options of a model over chat completions. */
export const chatOptionNames = ofAll;

/** The options of a model over the Responses API. */
export const responsesOptionNames: readonly string[] = [
  ...ofAll,
  'reasoningSummary',
  'builtInTools',
  'store',
];

/** Refuses a model without a name, and an option that there is not: a misspelt one must not be passed over. */
export const checkCall = (
  vendor: string,
  model: unknown,
  options: object,
  known: readonly string[],
): void => {
  if (typeof model !== 'string' || model.trim() === '') {
    throw new MillraceError('config', `A model of ${vendor} needs a name, such as 'gpt-5-mini'.`);
  }
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new MillraceError(
      'config',
      `The model '${model}' has no option '${unknown}'. Its options are: ${known.join(', ')}.`,
    );
  }
};
