import type {
  CacheControlEphemeral,
  OutputConfig,
  TextBlockParam,
  Tool,
  ToolChoice as WireToolChoice,
} from '@anthropic-ai/sdk/resources/messages';
import {
  type JsonSchema,
  MillraceError,
  type ModelRequest,
  type ToolChoice,
  type ToolDeclaration,
} from '@millrace/core';
import { isRecord } from '@millrace/core/adapter';
import type { JsonRecord, ToolNames } from '@millrace/wire';
import { cacheMark, type CacheTime, withMarks } from './cache-marks.js';
import { nativeSchema } from './native-schema.js';
import { mostTokens } from './most-tokens.js';
import { canThinkOn, type Thinking, thinkingConfig } from './thinking.js';
import { toText } from './user-blocks.js';
import { toWireMessages } from './wire-messages.js';

/** What the body of a request is made with, beside the request. */
export interface RequestSettings {
  readonly model: string;
  /** Tokens that an answer may have where the request says none. Default: 32,000, or what the model has. */
  readonly maxTokens?: number | undefined;
  readonly thinking?: Thinking | undefined;
  readonly effort?: Effort | undefined;
  readonly cache?: CacheTime | undefined;
  readonly builtInTools?: readonly JsonRecord[] | undefined;
  /** Further fields. They go before all others. */
  readonly body?: JsonRecord | undefined;
}

/** How much work a model puts into its answer. */
export type Effort = NonNullable<OutputConfig['effort']>;

/**
 * Writes the body of a request to the Messages API. Throws `invalidRequest` for what no model of Anthropic can
 * take.
 */
export const toMessagesBody = (
  settings: RequestSettings,
  request: ModelRequest,
  names: Pick<ToolNames, 'toWire'>,
): JsonRecord => {
  const { body: extra = {}, cache, model, builtInTools = [] } = settings;
  const mark = cache === undefined ? undefined : cacheMark(cache);
  const system = toText(request.system ?? '');
  const declared = (request.tools ?? []).map((tool) => toTool(tool, names));
  const tools: readonly unknown[] = [
    ...builtInTools,
    ...(system.length > 0 ? declared : markedLast(declared, mark)),
  ];
  const messages = toWireMessages(request.messages, names);
  const thinking = extra['thinking'] ?? thinkingConfig(settings.thinking);
  const budget = budgetOf(thinking);
  const canThink = budget === 0 || canThinkOn(messages);
  return present({
    model,
    max_tokens: tokensFor(model, request.maxTokens ?? settings.maxTokens, canThink ? budget : 0),
    system: filled(markedLast<TextBlockParam>(system, mark)),
    tools: filled(tools),
    tool_choice: tools.length === 0 ? undefined : toToolChoice(request.toolChoice, names),
    messages: mark === undefined ? messages : withMarks(messages, mark),
    temperature: request.temperature,
    stop_sequences: filled(request.stopSequences ?? []),
    stream: true,
    ...extra,
    output_config: outputConfig(settings, request),
    thinking: canThink ? thinking : undefined,
  });
};

const toTool = (
  { name, description, inputSchema }: ToolDeclaration,
  names: Pick<ToolNames, 'toWire'>,
): Tool => {
  const bad = Object.keys(inputSchema['properties'] ?? {}).find((key) => !takenKey.test(key));
  if (bad !== undefined) {
    const what = `The input of the tool '${name}' has a property '${bad.slice(0, 80)}', which cannot be sent.`;
    throw new MillraceError(
      'invalidRequest',
      `${what} Its name may have letters, digits, '_', '.' and '-', and at most 64 of them.`,
    );
  }
  return {
    name: names.toWire(name),
    ...(description === '' ? {} : { description }),
    input_schema: toInputSchema(inputSchema),
  };
};

/** What the API takes as a name of a property; it looks at those at the top only. */
const takenKey = /^[a-zA-Z0-9_.-]{1,64}$/u;

/**
 * The API takes no choice of schemas at the top. The model is told of it; whoever validates the input looks after
 * it.
 */
const toInputSchema = ({ anyOf, oneOf, allOf, ...schema }: JsonSchema): Tool.InputSchema => {
  const told = Object.entries({ anyOf, oneOf, allOf }).flatMap(([keyword, value]) =>
    value === undefined ? [] : [`${keyword}: ${JSON.stringify(value)}`],
  );
  const description = [schema['description'], ...told].filter(Boolean).join('\n');
  return { ...schema, ...(description === '' ? {} : { description }), type: 'object' };
};

const toToolChoice = (
  choice: ToolChoice | undefined,
  names: Pick<ToolNames, 'toWire'>,
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
      return { type: 'tool', name: names.toWire(choice.name) };
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

/** What is asked for is never made less: the API says what is wrong with it. */
const tokensFor = (model: string, asked: number | undefined, budget: number): number =>
  asked === undefined ? Math.min(defaultTokens + budget, mostTokens(model)) : asked + budget;

/** The tokens that a model is given to think with, where it is told so. */
const budgetOf = (thinking: unknown): number => {
  const budget = isRecord(thinking) ? thinking['budget_tokens'] : undefined;
  return typeof budget === 'number' ? budget : 0;
};

const markedLast = <Block extends Pick<TextBlockParam, 'cache_control'>>(
  blocks: readonly Block[],
  mark: CacheControlEphemeral | undefined,
): readonly Block[] =>
  mark === undefined
    ? blocks
    : blocks.map((block, index) =>
        index === blocks.length - 1 ? { ...block, cache_control: mark } : block,
      );

const filled = <T>(values: readonly T[]): readonly T[] | undefined =>
  values.length === 0 ? undefined : values;

const present = (body: JsonRecord): JsonRecord =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
