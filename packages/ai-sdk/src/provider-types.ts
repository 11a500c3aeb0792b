/**
 * A language model of the AI SDK's provider interface: `LanguageModelV3` of `@ai-sdk/provider` 3, or `LanguageModelV4` of
 * version 4. Declared by shape, because one build fits both.
 */
export interface AiSdkLanguageModel {
  readonly specificationVersion: 'v3' | 'v4';
  /** The name of the provider, such as `google.generative-ai`. */
  readonly provider: string;
  readonly modelId: string;
  /** The URLs that the provider's server fetches itself, as patterns by media type. */
  readonly supportedUrls: SupportedUrls | PromiseLike<SupportedUrls>;
  /** Sends a request, and resolves to the parts of the answer. */
  doStream(
    options: AiSdkCallOptions,
  ): PromiseLike<{ readonly stream: Pick<ReadableStream<unknown>, 'getReader' | 'locked'> }>;
}

export type SupportedUrls = Readonly<Record<string, readonly RegExp[]>>;

/** A request as the provider interface takes it. */
export interface AiSdkCallOptions {
  readonly prompt: readonly unknown[];
  /** Whether the answer also has the vendor's events, as parts of type `raw`. */
  readonly includeRawChunks?: boolean | undefined;
  readonly abortSignal?: AbortSignal | undefined;
}

/** Fields by provider, such as `{ google: { thinkingConfig: { includeThoughts: true } } }`. */
export type ProviderOptions = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** A tool of the AI SDK, as its `tool()`, `dynamicTool()` and MCP client make them, and the factories of its providers. */
export interface AiSdkTool {
  readonly type?: string | undefined;
  /** Only of tools that the provider defines, such as `google.google_search`. */
  readonly id?: string | undefined;
  readonly args?: unknown;
  readonly description?: unknown;
  readonly inputSchema?: unknown;
  readonly execute?: unknown;
  readonly toModelOutput?: unknown;
  readonly needsApproval?: unknown;
  readonly providerOptions?: unknown;
}
