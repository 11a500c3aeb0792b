import type { RequestOptions } from 'millrace';

/** The definition of a vendor: its address, its capabilities, and how it differs from OpenAI's API. */
export interface Profile {
  /** The name of the vendor in errors, such as `OpenAI`. */
  readonly name: string;
  /** The base URL, which ends with `/v1`. Without one, the option or the variable is required. */
  readonly baseURL?: string | undefined;
  /** The environment variable that overrides `baseURL`. */
  readonly baseURLVariable?: string | undefined;
  /** The environment variable that holds the key. */
  readonly keyVariable?: string | undefined;
  /** The header that carries the key. Default: `Authorization`, as a bearer token. */
  readonly keyHeader?: string | undefined;
  /** An `apiKey` function returns a bearer token, which is sent without `keyHeader`. Default: false. */
  readonly takesTokens?: boolean | undefined;
  /** The key is optional. Default: false. */
  readonly keyless?: boolean | undefined;
  /** `OPENAI_ORG_ID`, `OPENAI_PROJECT_ID` and `OPENAI_CUSTOM_HEADERS` apply. Default: false. */
  readonly isOpenAI?: boolean | undefined;
  /** Fields of every request. */
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  /** Options that all models, or those with a matching name, do not support. Default: none. */
  readonly unsupported?: readonly UnsupportedOptions[] | undefined;
  /**
   * When the vendor can enforce a schema for the answer: `always`, only in requests without tools, or `never`.
   * Otherwise the model gets a tool for its answer. Default: `never`.
   */
  readonly nativeOutput?: 'always' | 'withoutTools' | 'never' | undefined;
  /** Declare tools with a suitable schema as `strict`. Default: false. */
  readonly strictTools?: boolean | undefined;
  /** Media that messages may contain. Default: all. */
  readonly media?: readonly MediaType[] | undefined;
  /** The models with encrypted reasoning, which is requested and sent back over `responses`. */
  readonly encryptsReasoning?: RegExp | undefined;

  // Only for chat completions:

  /** The role of the system message. Default: `system`. */
  readonly systemRole?: 'system' | 'developer' | undefined;
  /** The field for the maximum length of an answer. Default: `max_tokens`. */
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens' | undefined;
  /** Ask for usage with `stream_options`. Default: true. */
  readonly asksForUsage?: boolean | undefined;
  /** User messages may have a `name`; otherwise it becomes a prefix of the text. Default: false. */
  readonly takesNames?: boolean | undefined;
  /** Tool results may contain media; otherwise these follow in a user message. Default: false. */
  readonly takesToolMedia?: boolean | undefined;
  /** The field of a message with tool calls that returns the thinking before them. Default: none. */
  readonly thinkingField?: string | undefined;
  /** Messages of the assistant may have the `annotations` that the vendor sent. Default: false. */
  readonly takesAnnotations?: boolean | undefined;
  /** Every tool call comes in one chunk, and its `index` is meaningless. Default: false. */
  readonly sendsWholeCalls?: boolean | undefined;
  /**
   * `[DONE]` completes an answer without a finish reason. Otherwise such a stream is an `invalidResponse`, because it
   * may be truncated. Default: false.
   */
  readonly finishesWithDone?: boolean | undefined;
  /** Send `content: null` in a message with only tool calls, not `''`, which more vendors accept. Default: false. */
  readonly takesNoContent?: boolean | undefined;
  /** A tool can be forced by name; otherwise it is offered alone, and required. Default: true. */
  readonly takesNamedChoice?: boolean | undefined;
  /** Fields of the first tool call in a message without the vendor's signature. Default: none. */
  readonly unsignedCall?: Readonly<Record<string, unknown>> | undefined;
  /** The IDs that tool calls may have. Default: up to 40 characters. */
  readonly toolIds?: ToolIdRule | undefined;
  /** An assistant message to insert if a user message directly follows a tool message. Default: none. */
  readonly assistantTextAfterTools?: string | undefined;
  /** Fields of an assistant message that the model should continue. Default: none. */
  readonly continuation?: Readonly<Record<string, unknown>> | undefined;
}

/** How much a model thinks before it answers. Each model supports some of these. */
export type ReasoningEffort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** How long an answer is. */
export type Verbosity = 'low' | 'medium' | 'high';

export type MediaType = 'image' | 'audio' | 'file';

/** Options that some models do not support. */
export interface UnsupportedOptions {
  readonly options: readonly (keyof RequestOptions)[];
  /** Matches the names of these models. Default: all. */
  readonly models?: RegExp | undefined;
  /** Supported with `reasoningEffort: 'none'`. Default: false. */
  readonly whileReasoning?: boolean | undefined;
}

/** The IDs of tool calls that a vendor accepts, and the replacement for the n-th one that it does not accept. */
export interface ToolIdRule {
  readonly accepts: RegExp;
  readonly rename: (n: number) => string;
}

/** The name of a model of OpenAI, as an example in errors of OpenAI only. */
export const exampleOf = ({ isOpenAI }: Profile, name: string): string | undefined =>
  isOpenAI === true ? name : undefined;

/** The options that a model does not support. */
export const unsupportedBy = (
  { nativeOutput = 'never', unsupported = [] }: Profile,
  model: string,
  effort?: ReasoningEffort,
): readonly (keyof RequestOptions)[] => [
  ...(nativeOutput === 'never' ? (['outputSchema'] as const) : []),
  ...unsupported
    .filter(({ models }) => models?.test(model) !== false)
    .filter(({ whileReasoning }) => whileReasoning !== true || effort !== 'none')
    .flatMap(({ options }) => options),
];
