import { isFlag, isObject, isText, listOf, oneOf, type Rule } from '@millrace/core/adapter';
import { type JsonRecord, settingsRules, type VendorSettings } from '@millrace/wire';
import type { ReasoningEffort } from './profile.js';

/** How a model is reached and asked. `baseUrl` is given up to and including `/v1`. */
export interface EndpointOptions extends VendorSettings {
  /** The organization that pays. Default for OpenAI: `OPENAI_ORG_ID`. */
  readonly organization?: string | undefined;
  /** The project that pays. Default for OpenAI: `OPENAI_PROJECT_ID`. */
  readonly project?: string | undefined;
  /** How much the model thinks before it answers. Default: as the API has it for the model. */
  readonly reasoningEffort?: ReasoningEffort | undefined;
  /** Fields of the request that there is no option for. They go before all others. */
  readonly body?: JsonRecord | undefined;
}

/** How a model is reached and asked over the Responses API. */
export interface ResponsesOptions extends EndpointOptions {
  /** Asks for a summary of what the model thinks, to be shown. Default: none is made. */
  readonly reasoningSummary?: 'auto' | 'concise' | 'detailed' | undefined;
  /** Tools that run at the vendor, as it declares them: `{ type: 'web_search' }`. Default: none. */
  readonly builtInTools?: readonly JsonRecord[] | undefined;
  /** The vendor keeps what was said. Default: false. */
  readonly store?: boolean | undefined;
}

/** What each option of a model over chat completions may be. */
export const chatRules: Readonly<Record<keyof EndpointOptions, Rule>> = {
  ...settingsRules,
  organization: isText,
  project: isText,
  reasoningEffort: oneOf('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'),
  body: isObject,
};

/** What each option of a model over the Responses API may be. */
export const responsesRules: Readonly<Record<keyof ResponsesOptions, Rule>> = {
  ...chatRules,
  reasoningSummary: oneOf('auto', 'concise', 'detailed'),
  builtInTools: listOf('tools as the vendor declares them'),
  store: isFlag,
};
