import type { ModelContext, ModelRequest, ResultSource } from 'millrace';
import { isFlag, isObject, isText, oneOf, type Rule } from 'millrace/values';
import { type JsonRecord, type Reader, settingsRules, type VendorSettings } from '@millrace/wire';
import type { Profile, ReasoningEffort, Verbosity } from './profile.js';

/** Options of a model over chat completions. `baseURL` ends with `/v1`. */
export interface EndpointOptions extends VendorSettings {
  /** The organization to bill. Default for OpenAI: `OPENAI_ORG_ID`. */
  readonly organization?: string | undefined;
  /** The project to bill. Default for OpenAI: `OPENAI_PROJECT_ID`. */
  readonly project?: string | undefined;
  /** How much the model thinks before it answers. Default: the API's default for the model. */
  readonly reasoningEffort?: ReasoningEffort | undefined;
  /** How long the answer is. Default: the API's default. */
  readonly verbosity?: Verbosity | undefined;
  /** How the vendor schedules and prices the request, such as `flex` or `priority`. Default: the project's setting. */
  readonly serviceTier?: string | undefined;
  /** Whether the model may call several tools in one message. Default: the API's default. */
  readonly parallelToolCalls?: boolean | undefined;
  /**
   * Further fields of the request. Objects are merged one level deep and lists united with those that Millrace sends; any
   * other field replaces its own.
   */
  readonly body?: JsonRecord | undefined;
  /**
   * `anyMedia` of `@millrace/openai/media`: generated images and recordings become blocks of the answer, and media that
   * the model does not accept become notes. Default: the former are left out, the latter are errors.
   */
  readonly media?: MediaHandling | undefined;
}

/** Fits media to an API, and reads those that a model generates. `anyMedia` of the entry `media` is one. */
export interface MediaHandling {
  /** Returns a reader that adds the media of an answer to its chunks. */
  readonly fromWire: (reader: Reader, origin: MediaOrigin) => Reader;
  /** Returns a request that the API accepts. The same messages always become the same ones. */
  readonly toWire: (
    request: ModelRequest,
    target: MediaTarget,
    context: Pick<ModelContext, 'report'>,
  ) => ModelRequest;
}

/** One model over one API. */
export interface MediaTarget {
  readonly profile: Profile;
  readonly model: string;
  /** The path of the API below the base URL. */
  readonly path: string;
}

export interface MediaOrigin {
  /** The name of the vendor in encoded signatures. */
  readonly vendor: string;
  /** The name of the server in errors. */
  readonly server: string;
  readonly options: EndpointOptions;
}

/** Options of a model over the Responses API. */
export interface ResponsesOptions extends EndpointOptions {
  /** Asks for a readable summary of the reasoning. Default: no summary. */
  readonly reasoningSummary?: 'auto' | 'concise' | 'detailed' | undefined;
  /** Tools that the vendor runs, in its format: `{ type: 'web_search' }`. Default: none. */
  readonly builtInTools?: readonly JsonRecord[] | undefined;
  /** Whether the vendor stores the conversation. Default: false. */
  readonly store?: boolean | undefined;
  /**
   * Who may decide on calls of hosted MCP tools that require approval. `client`: the person who chats, over any server, or
   * your program. `program`: your program only; servers hide the request, and refuse a decision. Default: `client`.
   */
  readonly mcpApprovals?: ResultSource | undefined;
}

export const chatRules: Readonly<Record<keyof EndpointOptions, Rule>> = {
  ...settingsRules,
  organization: isText,
  project: isText,
  reasoningEffort: oneOf('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'),
  verbosity: oneOf('low', 'medium', 'high'),
  serviceTier: isText,
  parallelToolCalls: isFlag,
  body: isObject,
  media: isObject,
};

export const responsesRules: Readonly<Record<keyof ResponsesOptions, Rule>> = {
  ...chatRules,
  reasoningSummary: oneOf('auto', 'concise', 'detailed'),
  builtInTools: [Array.isArray, 'a list of tools in the format of the vendor'],
  store: isFlag,
  mcpApprovals: oneOf('client', 'program'),
};
