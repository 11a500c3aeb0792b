import type { CheckRequest } from './check-request.js';
import { isRecord } from '../is-record.js';
import { jsonHeader } from './json-header.js';
import { functionShape, isReasoningModel, schemaFormat } from './openai-shapes.js';
import { recordsIn, repeated, stringAt } from './records.js';
import {
  responsesItem,
  responsesItemIds,
  responsesPairing,
  responsesReasoning,
} from './responses-items.js';
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
} from './shape.js';

/** A function, or a tool that runs at the vendor. */
const tool = tagged(
  'type',
  { function: functionShape({ type: string }, { defer_loading: boolean }) },
  also(
    record,
    rule(`needs a 'type'.`, (it) => stringAt(it, 'type') !== ''),
  ),
);

const toolChoice = textOr(
  oneOf('none', 'auto', 'required'),
  tagged(
    'type',
    {
      function: object({ type: string, name }),
      custom: object({ type: string, name }),
      allowed_tools: object({
        type: string,
        mode: oneOf('auto', 'required'),
        tools: list(record, 1),
      }),
    },
    record,
  ),
);

const format = tagged('type', {
  text: object({ type: string }),
  json_object: object({ type: string }),
  json_schema: schemaFormat({ type: string }),
});

const includable = oneOf(
  'file_search_call.results',
  'web_search_call.results',
  'web_search_call.action.sources',
  'message.input_image.image_url',
  'computer_call_output.output.image_url',
  'code_interpreter_call.outputs',
  'reasoning.encrypted_content',
  'message.output_text.logprobs',
);

const reasoning = object(
  {},
  {
    effort: nullable(oneOf('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')),
    summary: nullable(oneOf('auto', 'concise', 'detailed')),
    generate_summary: nullable(oneOf('auto', 'concise', 'detailed')),
  },
);

const shape = object(
  { model: filledString, input: textOr(string, list(responsesItem, 1)) },
  {
    background: nullable(boolean),
    context_management: anything,
    conversation: anything,
    include: nullable(list(includable)),
    instructions: nullable(string),
    max_output_tokens: nullable(integer(16)),
    max_tool_calls: nullable(integer(1)),
    metadata: nullable(record),
    moderation: anything,
    parallel_tool_calls: nullable(boolean),
    previous_response_id: nullable(string),
    prompt: anything,
    prompt_cache_key: nullable(string),
    prompt_cache_options: record,
    prompt_cache_retention: nullable(oneOf('in_memory', '24h')),
    reasoning: nullable(reasoning),
    safety_identifier: nullable(string),
    service_tier: nullable(oneOf('auto', 'default', 'flex', 'scale', 'priority')),
    store: nullable(boolean),
    stream: nullable(boolean),
    stream_options: nullable(object({}, { include_obfuscation: boolean })),
    temperature: nullable(number(0, 2)),
    text: object({}, { format, verbosity: nullable(oneOf('low', 'medium', 'high')) }),
    tool_choice: toolChoice,
    tools: list(tool, 1, 128),
    top_logprobs: nullable(integer(0, 20)),
    top_p: nullable(number(0, 1)),
    truncation: nullable(oneOf('auto', 'disabled')),
    user: string,
  },
);

type Body = Readonly<Record<string, unknown>>;

const namesOf = ({ tools }: Body, ...types: readonly string[]): readonly string[] =>
  recordsIn(tools).flatMap((declared) =>
    types.includes(stringAt(declared, 'type')) ? [stringAt(declared, 'name')] : [],
  );

/** A function and a custom tool are chosen by their type and name. */
const choosesDeclared = (body: Body): boolean => {
  const choice = body['tool_choice'];
  const type = stringAt(choice, 'type');
  if (type !== 'function' && type !== 'custom') return true;
  return namesOf(body, type).includes(stringAt(choice, 'name'));
};

const deferredIn = (tools: unknown): readonly string[] =>
  recordsIn(tools).flatMap((it) => (it['defer_loading'] === true ? [stringAt(it, 'name')] : []));

/** A call of a deferred function is in a namespace, with the name of the function unless it is declared in another. */
const loadedNamespaces: Shape = (body) => {
  if (!isRecord(body)) return [];
  const deferred = deferredIn(body['tools']);
  return recordsIn(body['input']).flatMap((item) =>
    item['type'] === 'function_call' &&
    deferred.includes(stringAt(item, 'name')) &&
    stringAt(item, 'namespace') === ''
      ? [
          `Missing namespace for function_call '${stringAt(item, 'name')}'. It does not exist in the default namespace. Round-trip the model's function_call item with its namespace field included.`,
        ]
      : [],
  );
};

const rules: readonly Shape[] = [
  rule(
    `'tool_choice' is only allowed when 'tools' are specified.`,
    (body) => !isPresent(body, 'tool_choice') || isPresent(body, 'tools'),
  ),
  rule(`'tool_choice' names a function that is not in 'tools'.`, choosesDeclared),
  rule(
    `'tools' has two functions of one name.`,
    (body) => repeated(namesOf(body, 'function', 'custom')).length === 0,
  ),
  rule(
    `tools.tool_search requires at least one deferred tool.`,
    ({ tools }) =>
      !recordsIn(tools).some((it) => it['type'] === 'tool_search') ||
      recordsIn(tools).some((it) => it['defer_loading'] === true),
  ),
  loadedNamespaces,
  rule(
    `'stream_options' is only allowed when 'stream' is enabled.`,
    (body) => body['stream'] === true || (body['stream_options'] ?? null) === null,
  ),
  rule(
    `Unsupported parameter: 'temperature' is not supported with this model.`,
    (body) => !isReasoningModel(body) || (body['temperature'] ?? 1) === 1,
  ),
];

/** Checks a request to `/responses` as OpenAI does. https://platform.openai.com/docs/api-reference/responses/create */
export const checkResponsesRequest: CheckRequest = (headers, body, { allow = [] } = {}) => [
  ...jsonHeader(headers),
  ...also(
    shape,
    ...rules,
    responsesPairing,
    responsesReasoning,
    responsesItemIds,
  )(body, { path: '', allow }),
];
