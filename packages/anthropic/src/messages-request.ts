import type {
  OutputConfig,
  ToolChoice as WireToolChoice,
} from '@anthropic-ai/sdk/resources/messages';
import type { AssistantMessage, Message, ModelRequest } from 'millrace';
import { isRecord } from 'millrace/values';
import {
  type JsonRecord,
  listAt,
  memoizeLast,
  mergeBody,
  type RawJson,
  rawJsonList,
  stringifyObject,
  textAt,
  type WireNames,
} from '@millrace/wire';
import {
  type CacheTime,
  createMarkBudget,
  withLastMarked,
  withToolsMarked,
} from './cache-marks.js';
import { nativeSchema } from './native-schema.js';
import { canContinueThinking, type Thinking, thinkingConfig } from './thinking.js';
import { toolDeclaration } from './tool-declaration.js';
import { turnText, withEndMarks, withOwnMarks } from './turns.js';
import { toText } from './user-blocks.js';
import { vendor } from './vendor-block.js';
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
  /** Further fields. Objects are merged one level deep, and lists united; any other field overrides. */
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
): ((request: ModelRequest, naming: WireNames, now: number) => string) => {
  const { body: extra = {}, cache, model, builtInTools = [] } = settings;
  const thinking = extra['thinking'] ?? thinkingConfig(settings.thinking);
  const budget = budgetOf(thinking);
  const systemOf = systemBlocks();
  const builtIn = builtInTools.map((tool) => ({ json: JSON.stringify(tool), fields: tool }));
  const inBody = listAt(extra, 'tools').filter(isRecord);
  const declarationOf = toolDeclaration();
  const messagesOf = wireMessages();
  return (request, naming, now) => {
    const [fixed, changing] = systemOf(request);
    const declared = (request.tools ?? []).map((tool) => ({
      json: declarationOf(tool, naming),
      fields: tool.vendorOptions?.[vendor] ?? {},
    }));
    const allTools = [...builtIn, ...declared];
    const { settled, open } = messagesOf(request.messages, naming);
    const canThink = budget === 0 || canContinueThinking(open);
    const marks = createMarkBudget(
      { body: extra, tools: [...allTools.map(({ fields }) => fields), ...inBody] },
      cache,
    );
    // In the order of their use: the last one covers all before it.
    const ownMarked = withOwnMarks(open, marks);
    const earlier = settled(marks);
    const turns = withEndMarks(ownMarked, marks);
    const system = [...withLastMarked(fixed, marks), ...withLastMarked(changing, marks)];
    // The fixed part of the system prompt covers the tools.
    const tools =
      fixed.length > 0 ? allTools.map(({ json }) => json) : withToolsMarked(allTools, marks);
    const fields = {
      model,
      max_tokens: tokensFor(model, request.maxTokens ?? settings.maxTokens, canThink ? budget : 0),
      system: filled(system),
      tools: filled(tools),
      tool_choice: tools.length === 0 ? undefined : toToolChoice(request.toolChoice, naming),
      messages: rawJsonList([...earlier, ...turns.map(turnText)]),
      temperature: request.temperature,
      stop_sequences: request.stopSequences?.length === 0 ? undefined : request.stopSequences,
      stream: true,
    };
    return stringifyObject({
      ...mergeBody(fields, extra),
      container: containerFor(settings, request.messages, now),
      output_config: outputConfig(settings, request),
      thinking: canThink ? thinking : undefined,
    });
  };
};

/** Creates a serializer of system prompts: the part that is the same in every call, and the rest, which changes. */
const systemBlocks = (): ((
  request: Pick<ModelRequest, 'system' | 'fixedSystem'>,
) => readonly [fixed: readonly string[], changing: readonly string[]]) => {
  const write = (text: string): readonly string[] => toText(text).map((it) => JSON.stringify(it));
  const fixedOf = memoizeLast(write);
  const changingOf = memoizeLast(write);
  return ({ system = '', fixedSystem = 0 }) => [
    fixedOf(system.slice(0, fixedSystem)),
    changingOf(system.slice(fixedSystem)),
  ];
};

/**
 * The container in which the conversation has run code. While a call of code is pending, the API requires it; otherwise
 * it is reused until it expires. Skills and other fields of the user are kept.
 */
const containerFor = (
  { body, builtInTools = [] }: RequestSettings,
  messages: ModelRequest['messages'],
  now: number,
): unknown => {
  const own = body?.['container'];
  if (typeof own === 'string' || textAt(own, 'id') !== '') return own;
  const answer = messages.findLast(isInContainer)?.vendor?.container;
  if (answer === undefined) return own;
  const isPending = messages.at(-1)?.role !== 'user';
  const isUsable = builtInTools.length > 0 || own !== undefined;
  const hasExpired = Date.parse(answer.expiresAt ?? '') <= now;
  if (!isPending && (hasExpired || !isUsable)) return own;
  return isRecord(own) ? { ...own, id: answer.id } : answer.id;
};

const isInContainer = (message: Message): message is AssistantMessage =>
  message.role === 'assistant' &&
  message.vendor?.name === vendor &&
  message.vendor.container !== undefined;

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
