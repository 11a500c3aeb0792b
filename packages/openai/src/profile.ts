import type { RequestOptions } from '@millrace/core';

/** What a vendor is, as data: where it is, what it takes, and how it differs from the wire that it speaks. */
export interface Profile {
  /** What errors call the vendor, such as `OpenAI`. */
  readonly name: string;
  /** Where it is, up to and including `/v1`. Without one, the option or the variable must say it. */
  readonly baseUrl?: string;
  /** The environment variable that goes before `baseUrl`. */
  readonly baseUrlVariable?: string;
  /** The environment variable that holds the key. */
  readonly keyVariable?: string;
  /** The header that carries the key. Default: `Authorization`, as a bearer token. */
  readonly keyHeader?: string;
  /** It answers without a key too. Default: false. */
  readonly keyless?: boolean;
  /** It is meant by `OPENAI_ORG_ID`, `OPENAI_PROJECT_ID` and `OPENAI_CUSTOM_HEADERS`. Default: false. */
  readonly isOpenAI?: boolean;
  /** Fields that every request has. */
  readonly body?: Readonly<Record<string, unknown>>;
  /** Options that it, or those of its models whose name matches, cannot take. Default: none. */
  readonly unsupported?: readonly UnsupportedOptions[];
  /**
   * When an answer can be held to a schema by the vendor: `always`, never while there are tools to ask for, or
   * `never`. Else the model gets a tool to answer with. Default: `never`.
   */
  readonly nativeOutput?: 'always' | 'withoutTools' | 'never';
  /** Tools whose schema fits are declared as `strict`. Default: false. */
  readonly strictTools?: boolean;
  /** Media that messages may have. Default: all. */
  readonly media?: readonly MediaType[];
  /** The models that reason in secret: over `responses`, their encrypted reasoning is asked for and sent back. */
  readonly encryptsReasoning?: RegExp;

  // Only of chat completions:

  /** The role of the system text. Default: `system`. */
  readonly systemRole?: 'system' | 'developer';
  /** The field that limits an answer. Default: `max_tokens`. */
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens';
  /** Usage has to be asked for with `stream_options`. Default: true. */
  readonly asksForUsage?: boolean;
  /** User messages may carry the `name` of the speaker; else the name is put before the text. Default: false. */
  readonly takesNames?: boolean;
  /** Tool results may have media; else these follow in a user message. Default: false. */
  readonly takesToolMedia?: boolean;
  /** The field of a message with tool calls in which the thinking before them is wanted back. Default: none. */
  readonly thinkingField?: string;
  /** Every tool call comes in one piece, and its `index` says nothing. Default: false. */
  readonly sendsWholeCalls?: boolean;
  /** One tool can be forced by its name; else it is offered alone, and required. Default: true. */
  readonly takesNamedChoice?: boolean;
  /** Fields of the first call of a message that was not signed by the vendor, but another one. Default: none. */
  readonly unsignedCall?: Readonly<Record<string, unknown>>;
  /** The ids that tool calls may have. Default: up to 40 characters. */
  readonly toolIds?: ToolIdRule;
  /** What the assistant is made to say where a user speaks right behind a tool. Default: nothing. */
  readonly saidBehindTools?: string;
  /** Fields of an assistant message that comes last, and is to be gone on with. Default: none. */
  readonly continuation?: Readonly<Record<string, unknown>>;
}

/** How much a model thinks before it answers. Which of these it takes depends on the model. */
export type ReasoningEffort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** What messages may have beside text. */
export type MediaType = 'image' | 'audio' | 'file';

/** Options that some models cannot take. */
export interface UnsupportedOptions {
  readonly options: readonly (keyof RequestOptions)[];
  /** The names of these models. Default: all. */
  readonly models?: RegExp;
}

/** Which ids a vendor takes for tool calls, and how the n-th one that it does not take is renamed. */
export interface ToolIdRule {
  readonly accepts: RegExp;
  readonly rename: (n: number) => string;
}

/** The options that a model of a profile cannot take. */
export const unsupportedBy = (
  { nativeOutput = 'never', unsupported = [] }: Profile,
  model: string,
): readonly (keyof RequestOptions)[] => [
  ...(nativeOutput === 'never' ? (['outputSchema'] as const) : []),
  ...unsupported.flatMap(({ models, options }) => (models?.test(model) === false ? [] : options)),
];
