import type {
  OutputConfig,
  ToolChoice as WireToolChoice,
} from '@anthropic-ai/sdk/resources/messages';
import type { ModelRequest } from '@millrace/core';
import { isRecord } from '@millrace/core/values';
import {
  type JsonRecord,
  memoizeLast,
  type RawJson,
  rawJsonList,
  stringifyObject,
  type WireNames,
} from '@millrace/wire';
import { cacheMark, type CacheTime, withLastMarked, withMarks } from './cache-marks.js';
import { nativeSchema } from './native-schema.js';
import { canContinueThinking, type Thinking, thinkingConfig } from './thinking.js';
import { toolDeclaration } from './tool-declaration.js';
import { turnText } from './turns.js';
import { toText } from './user-blocks.js';
import { wireMessages } from './wire-messages.js';

/** Settings of all requests of a model. */
export interface RequestSettings {
  readonly model: string;
  /** The default of the request's `maxTokens`. Default: 32,000, or the limit of the model. */
  readonly maxTokens?: number | undefined;
  readonly thinking?: Thinking | undefined;
  readonly effort?: Effort | undefined;
  readonly cache?: CacheTime | undefined;
  readonly builtInTools?: readonly JsonRecord[] | undefined;
  /** Further fields. They override all others. */
  readonly body?: JsonRecord | undefined;
}

/** How much effort a model puts into its answer. */
export type Effort = NonNullable<OutputConfig['effort']>;

/**
 * Creates a serializer of requests to the Messages API. Parts that repeat are serialized once. It throws
 * `invalidRequest` for content that no model of Anthropic supports.
 */
export const messagesRequest = (
  settings: RequestSettings,
): ((request: ModelRequest, naming: WireNames) => string) => {
  const { body: extra = {}, cache, model, builtInTools = [] } = settings;
  const mark = cache === undefined ? undefined : cacheMark(cache);
  const markedLast = (blocks: readonly string[]): readonly string[] =>
    mark === undefined ? blocks : withLastMarked(blocks, mark);
  const thinking = extra['thinking'] ?? thinkingConfig(settings.thinking);
  const budget = budgetOf(thinking);
  const systemOf = memoizeLast((system) =>
    markedLast(toText(system).map((block) => JSON.stringify(block))),
  );
  const builtIn = builtInTools.map((tool) => JSON.stringify(tool));
  const declarationOf = toolDeclaration();
  const messagesOf = wireMessages();
  return (request, naming) => {
    const system = systemOf(request.system ?? '');
    const declared = (request.tools ?? []).map((tool) => declarationOf(tool, naming));
    const tools = [...builtIn, ...(system.length > 0 ? declared : markedLast(declared))];
    const { settled, open } = messagesOf(request.messages, naming);
    const canThink = budget === 0 || canContinueThinking(open);
    const turns = mark === undefined ? open : withMarks(open, mark);
    return stringifyObject({
      model,
      max_tokens: tokensFor(model, request.maxTokens ?? settings.maxTokens, canThink ? budget : 0),
      system: filled(system),
      tools: filled(tools),
      tool_choice: tools.length === 0 ? undefined : toToolChoice(request.toolChoice, naming),
      messages: rawJsonList([settled, ...turns.map(turnText)]),
      temperature: request.temperature,
      stop_sequences: request.stopSequences?.length === 0 ? undefined : request.stopSequences,
      stream: true,
      ...extra,
      output_config: outputConfig(settings, request),
      thinking: canThink ? thinking : undefined,
    });
  };
};

const toToolChoice = (
  choice: ModelRequest['toolChoice'],
  { toolName }: WireNames,
): WireToolChoice | undefined => {
  switch (choice) {
    case undefined:
    case 'auto':
      return undefined;
    case 'none':
      return { type: 'none' };
    case 'required':
      return { type: 'any' };
    default:
      return { type: 'tool', name: toolName(choice.name) };
  }
};

const outputConfig = (
  { effort, body }: RequestSettings,
  { outputSchema }: ModelRequest,
): OutputConfig | undefined => {
  const schema = outputSchema === undefined ? undefined : nativeSchema(outputSchema);
  const config = {
    ...(effort === undefined ? {} : { effort }),
    ...(schema === undefined ? {} : { format: { type: 'json_schema' as const, schema } }),
    ...(isRecord(body?.['output_config']) ? body['output_config'] : {}),
  };
  return Object.keys(config).length === 0 ? undefined : config;
};

const defaultTokens = 32_000;

/** An explicit number is never reduced: the API reports one that is too high. */
const tokensFor = (model: string, asked: number | undefined, budget: number): number =>
  asked === undefined ? Math.min(defaultTokens + budget, maxOutputTokens(model)) : asked + budget;

/** The thinking budget in tokens; 0 if none is set. */
const budgetOf = (thinking: unknown): number => {
  const budget = isRecord(thinking) ? thinking['budget_tokens'] : undefined;
  return typeof budget === 'number' ? budget : 0;
};

const filled = (texts: readonly string[]): RawJson | undefined =>
  texts.length === 0 ? undefined : rawJsonList(texts);

/**
 * Limits of older models in tokens, including thinking. The API rejects requests for more. Other models support at
 * least 64,000.
 *
 * https://platform.claude.com/docs/en/about-claude/models/overview
 */
const limits: readonly (readonly [model: RegExp, tokens: number])[] = [
  [/claude-3-(haiku|sonnet|opus)|claude-2|claude-instant/u, 4_096],
  [/claude-3-5-/u, 8_192],
  [/claude-(opus-4|4-opus)(-[01])?([-@]2025\d{4}|$|-v\d|-latest)/u, 32_000],
];

/** The maximum number of output tokens of an older model; `Infinity` for any other. */
const maxOutputTokens = (model: string): number =>
  limits.find(([pattern]) => pattern.test(model))?.[1] ?? Infinity;
