import { isRecord } from '../is-record.js';
import type { CheckRequest } from './check-request.js';
import { closedSchema } from './closed-schema.js';
import { jsonHeader } from './json-header.js';
import { cacheControl, messagesMessage, textBlock } from './messages-blocks.js';
import {
  messagesOrder,
  messagesPairing,
  messagesServerTools,
  messagesThinking,
} from './messages-turns.js';
import { recordsIn, repeated, stringAt } from './records.js';
import {
  also,
  anything,
  boolean,
  filledString,
  integer,
  isPresent,
  list,
  name,
  nullable,
  number,
  object,
  oneOf,
  record,
  rule,
  type Shape,
  string,
  tagged,
  textOr,
  visibleString,
} from './shape.js';

const inputSchema = also(
  record,
  rule(`'type' must be 'object'.`, (schema) => schema['type'] === 'object'),
  rule(`does not support oneOf, allOf, or anyOf at the top level.`, (schema) =>
    ['oneOf', 'allOf', 'anyOf'].every((key) => !(key in schema)),
  ),
  rule(`Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'`, ({ properties }) =>
    Object.keys(isRecord(properties) ? properties : {}).every((key) =>
      /^[a-zA-Z0-9_.-]{1,64}$/.test(key),
    ),
  ),
);

const customTool = object(
  { name, input_schema: inputSchema },
  {
    type: nullable(oneOf('custom')),
    description: string,
    cache_control: cacheControl,
    allowed_callers: list(string),
    defer_loading: boolean,
    eager_input_streaming: nullable(boolean),
    input_examples: list(record),
    strict: boolean,
  },
);

const tool: Shape = (value, place) =>
  (isRecord(value) && typeof value['type'] === 'string' && value['type'] !== 'custom'
    ? also(
        record,
        rule(`needs a 'name'.`, (it) => isPresent(it, 'name')),
      )
    : customTool)(value, place);

const parallel = { disable_parallel_tool_use: boolean };

const toolChoice = tagged('type', {
  auto: object({ type: string }, parallel),
  any: object({ type: string }, parallel),
  tool: object({ type: string, name }, parallel),
  none: object({ type: string }),
});

const display = { display: nullable(oneOf('summarized', 'omitted')) };

const thinking = tagged('type', {
  enabled: object({ type: string, budget_tokens: integer(1024) }, display),
  adaptive: object({ type: string }, display),
  between_tools: record,
  disabled: object({ type: string }),
});

/** https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations */
const guaranteedSchema = closedSchema({
  allRequired: false,
  refused: [
    ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
    ...['minLength', 'maxLength', 'maxItems', 'uniqueItems', 'contains'],
    ...['patternProperties', 'propertyNames', 'not', 'if', 'then', 'else', 'oneOf'],
  ],
});

const outputConfig = object(
  {},
  {
    effort: nullable(oneOf('low', 'medium', 'high', 'xhigh', 'max')),
    format: nullable(
      object({ type: oneOf('json_schema'), schema: also(record, guaranteedSchema) }),
    ),
  },
);

const required = {
  model: filledString,
  max_tokens: integer(0),
  messages: list(messagesMessage, 1),
};

const optional = {
  cache_control: cacheControl,
  container: anything,
  diagnostics: anything,
  inference_geo: nullable(string),
  metadata: object({}, { user_id: nullable(string) }),
  output_config: outputConfig,
  service_tier: oneOf('auto', 'standard_only'),
  speed: nullable(oneOf('standard', 'fast')),
  stop_sequences: list(visibleString),
  stream: boolean,
  system: textOr(string, list(textBlock, 1)),
  thinking,
  tool_choice: toolChoice,
  tools: list(tool, 1),
};

const sampling = { temperature: number(0, 1), top_k: integer(0), top_p: number(0, 1) };

/** Bodies by version: the newer one has no way to set how the model samples. https://platform.claude.com/docs/en/api/versioning */
const shapes: Readonly<Record<string, Shape>> = {
  '2023-06-01': object(required, { ...optional, ...sampling }),
  '2026-10-21': object(required, optional),
};

type Body = Readonly<Record<string, unknown>>;

const namesOf = ({ tools }: Body): readonly string[] =>
  recordsIn(tools).map((declared) => stringAt(declared, 'name'));

/** The newest models think whatever they are told. */
const thinks = ({ model, thinking: given }: Body): boolean =>
  /^claude-(opus-5-5|fable-5-1)/.test(String(model)) ||
  ['enabled', 'adaptive'].includes(stringAt(given, 'type'));

const budgetOf = ({ thinking: given }: Body): number => {
  const budget = isRecord(given) ? given['budget_tokens'] : undefined;
  return typeof budget === 'number' ? budget : 0;
};

const marksIn = (value: unknown): number => {
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + marksIn(item), 0);
  if (!isRecord(value)) return 0;
  const own = isRecord(value['cache_control']) ? 1 : 0;
  return own + Object.values(value).reduce((sum: number, item) => sum + marksIn(item), 0);
};

const choice = ({ tool_choice: it }: Body): string => stringAt(it, 'type');

/** The names of tools that a search has found. */
const referencesIn = (value: unknown): readonly string[] => {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (!isRecord(value)) return [];
  return value['type'] === 'tool_reference'
    ? [stringAt(value, 'tool_name')]
    : Object.values(value).flatMap(referencesIn);
};

const rules: readonly Shape[] = [
  rule(
    `tool_choice may only be specified while providing tools.`,
    (body) => !isPresent(body, 'tool_choice') || isPresent(body, 'tools'),
  ),
  rule(
    `tool_choice names a tool that is not in 'tools'.`,
    (body) =>
      choice(body) !== 'tool' || namesOf(body).includes(stringAt(body['tool_choice'], 'name')),
  ),
  rule(`tools: Tool names must be unique.`, (body) => repeated(namesOf(body)).length === 0),
  rule(
    `At least one tool must have defer_loading=false.`,
    ({ tools }) =>
      recordsIn(tools).length === 0 || recordsIn(tools).some((it) => it['defer_loading'] !== true),
  ),
  rule(`tools with defer_loading cannot use cache_control.`, ({ tools }) =>
    recordsIn(tools).every((it) => it['defer_loading'] !== true || !isPresent(it, 'cache_control')),
  ),
  rule(`Tool reference not found in available tools.`, (body) =>
    referencesIn(body['messages']).every((it) => namesOf(body).includes(it)),
  ),
  rule(
    `Thinking may not be enabled when tool_choice forces tool use.`,
    (body) => !thinks(body) || !['any', 'tool'].includes(choice(body)),
  ),
  rule(
    `'temperature' may only be set to 1 when thinking is enabled.`,
    (body) => !thinks(body) || (body['temperature'] ?? 1) === 1,
  ),
  rule(
    `'top_k' must be unset when thinking is enabled.`,
    (body) => !thinks(body) || !isPresent(body, 'top_k'),
  ),
  rule(`'max_tokens' must be greater than 'thinking.budget_tokens'.`, (body) => {
    const { max_tokens: most } = body;
    return typeof most !== 'number' || most > budgetOf(body);
  }),
  rule(
    `A maximum of 4 blocks with cache_control may be provided.`,
    (body) => marksIn([body['system'], body['tools'], body['messages']]) <= 4,
  ),
];

/** Checks a request to `/v1/messages` as Anthropic does. https://platform.claude.com/docs/en/api/messages */
export const checkMessagesRequest: CheckRequest = (headers, body, { allow = [] } = {}) => {
  const shape = shapes[headers['anthropic-version'] ?? ''];
  if (shape === undefined) return [`anthropic-version: header is required, with a valid version.`];
  const check = also(
    shape,
    ...rules,
    messagesPairing,
    messagesServerTools,
    messagesOrder,
    messagesThinking,
  );
  return [...jsonHeader(headers), ...check(body, { path: '', allow })];
};
