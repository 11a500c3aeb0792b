import type { RequestOptions } from '@millrace/core';

/** What a vendor is, as data: where it is, what it takes, and how it differs from the wire that it speaks. */
export interface Profile {
  /** What errors call the vendor, such as `OpenAI`. */
  readonly name: string;
  /** Where it is, up to and including `/v1`. Without one, the option or the variable must say it. */
  readonly baseUrl?: string | undefined;
  /** The environment variable that goes before `baseUrl`. */
  readonly baseUrlVariable?: string | undefined;
  /** The environment variable that holds the key. */
  readonly keyVariable?: string | undefined;
  /** The header that carries the key. Default: `Authorization`, as a bearer token. */
  readonly keyHeader?: string | undefined;
  /** What a function gives for a key is a token: it goes as a bearer token instead. Default: false. */
  readonly takesTokens?: boolean | undefined;
  /** It answers without a key too. Default: false. */
  readonly keyless?: boolean | undefined;
  /** It is meant by `OPENAI_ORG_ID`, `OPENAI_PROJECT_ID` and `OPENAI_CUSTOM_HEADERS`. Default: false. */
  readonly isOpenAI?: boolean | undefined;
  /** Fields that every request has. */
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  /** Options that it, or those of its models whose name matches, cannot take. Default: none. */
  readonly unsupported?: readonly UnsupportedOptions[] | undefined;
  /**
   * When an answer can be held to a schema by the vendor: `always`, never while there are tools to ask for, or
   * `never`. Else the model gets a tool to answer with. Default: `never`.
   */
  readonly nativeOutput?: 'always' | 'withoutTools' | 'never' | undefined;
  /** Tools whose schema fits are declared as `strict`. Default: false. */
  readonly strictTools?: boolean | undefined;
  /** Media that messages may have. Default: all. */
  readonly media?: readonly MediaType[] | undefined;
  /** The models that reason in secret: over `responses`, their encrypted reasoning is asked for and sent back. */
  readonly encryptsReasoning?: RegExp | undefined;

  // Only of chat completions:

  /** The role of the system text. Default: `system`. */
  readonly systemRole?: 'system' | 'developer' | undefined;
  /** The field that limits an answer. Default: `max_tokens`. */
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens' | undefined;
  /** Usage has to be asked for with `stream_options`. Default: true. */
  readonly asksForUsage?: boolean | undefined;
  /** User messages may carry the `name` of the speaker; else the name is put before the text. Default: false. */
  readonly takesNames?: boolean | undefined;
  /** Tool results may have media; else these follow in a user message. Default: false. */
  readonly takesToolMedia?: boolean | undefined;
  /** The field of a message with tool calls in which the thinking before them is wanted back. Default: none. */
  readonly thinkingField?: string | undefined;
  /** Every tool call comes in one piece, and its `index` says nothing. Default: false. */
  readonly sendsWholeCalls?: boolean | undefined;
  /**
   * Each piece with tool calls may say that the answer is finished, and a piece without any comes last. Default:
   * false.
   */
  readonly finishesEachCall?: boolean | undefined;
  /**
   * An answer without a finish reason is complete when `[DONE]` comes. Without it such a stream is an
   * `invalidResponse`, because it may be cut. Default: false.
   */
  readonly finishesWithDone?: boolean | undefined;
  /** A message of nothing but tool calls has `content: null`; else an empty text, which more take. Default: false. */
  readonly takesNoContent?: boolean | undefined;
  /** One tool can be forced by its name; else it is offered alone, and required. Default: true. */
  readonly takesNamedChoice?: boolean | undefined;
  /** Fields of the first call of a message that was not signed by the vendor, but another one. Default: none. */
  readonly unsignedCall?: Readonly<Record<string, unknown>> | undefined;
  /** The ids that tool calls may have. Default: up to 40 characters. */
  readonly toolIds?: ToolIdRule | undefined;
  /** What the assistant is made to say where a user speaks right behind a tool. Default: nothing. */
  readonly assistantTextAfterTools?: string | undefined;
  /** Fields of an assistant message that comes last, and is to be gone on with. Default: none. */
  readonly continuation?: Readonly<Record<string, unknown>> | undefined;
}

/** How much a model thinks before it answers. Which of these it takes depends on the model. */
export type ReasoningEffort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** What messages may have beside text. */
export type MediaType = 'image' | 'audio' | 'file';

/** Options that some models cannot take. */
export interface UnsupportedOptions {
  readonly options: readonly (keyof RequestOptions)[];
  /** The names of these models. Default: all. */
  readonly models?: RegExp | undefined;
  /** Only while they reason: with `reasoningEffort: 'none'` they can. Default: false. */
  readonly whileReasoning?: boolean | undefined;
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
  effort?: ReasoningEffort,
): readonly (keyof RequestOptions)[] => [
  ...(nativeOutput === 'never' ? (['outputSchema'] as const) : []),
  ...unsupported
    .filter(({ models }) => models?.test(model) !== false)
    .filter(({ whileReasoning }) => whileReasoning !== true || effort !== 'none')
    .flatMap(({ options }) => options),
];
