import { isRecord } from '../is-record.js';
import type { CheckRequest } from './check-request.js';
import { chatMessage, chatPairing } from './chat-messages.js';
import { functionShape, isReasoningModel, schemaFormat } from './openai-shapes.js';
import { jsonHeader } from './json-header.js';
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
} from './shape.js';

const tool = tagged('type', {
  function: object({ type: string, function: functionShape() }),
  custom: object({ type: string, custom: record }),
});

const toolChoice = textOr(
  oneOf('none', 'auto', 'required'),
  tagged('type', {
    function: object({ type: string, function: object({ name }) }),
    allowed_tools: object({ type: string, allowed_tools: record }),
    custom: object({ type: string, custom: object({ name }) }),
  }),
);

const responseFormat = tagged('type', {
  text: object({ type: string }),
  json_object: object({ type: string }),
  json_schema: object({ type: string, json_schema: schemaFormat() }),
});

const streamOptions = object({}, { include_usage: boolean, include_obfuscation: boolean });

const shape = object(
  { model: filledString, messages: list(chatMessage, 1) },
  {
    audio: anything,
    frequency_penalty: nullable(number(-2, 2)),
    function_call: anything,
    functions: list(record, 1),
    logit_bias: nullable(record),
    logprobs: nullable(boolean),
    max_completion_tokens: nullable(integer(1)),
    max_tokens: nullable(integer(1)),
    metadata: nullable(record),
    modalities: nullable(list(oneOf('text', 'audio'))),
    moderation: anything,
    n: nullable(integer(1, 128)),
    parallel_tool_calls: boolean,
    prediction: anything,
    presence_penalty: nullable(number(-2, 2)),
    prompt_cache_key: nullable(string),
    prompt_cache_options: record,
    prompt_cache_retention: nullable(oneOf('in_memory', '24h')),
    reasoning_effort: nullable(oneOf('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')),
    response_format: responseFormat,
    safety_identifier: nullable(string),
    seed: nullable(integer(-Infinity)),
    service_tier: nullable(oneOf('auto', 'default', 'flex', 'scale', 'priority')),
    stop: nullable(textOr(string, list(string, 1, 4))),
    store: nullable(boolean),
    stream: nullable(boolean),
    stream_options: nullable(streamOptions),
    temperature: nullable(number(0, 2)),
    tool_choice: toolChoice,
    tools: list(tool, 1, 128),
    top_logprobs: nullable(integer(0, 20)),
    top_p: nullable(number(0, 1)),
    user: string,
    verbosity: nullable(oneOf('low', 'medium', 'high')),
    web_search_options: record,
  },
);

type Body = Readonly<Record<string, unknown>>;

const namesOf = ({ tools }: Body, ...types: readonly string[]): readonly string[] =>
  recordsIn(tools).flatMap((declared) =>
    types.flatMap((type) => (type in declared ? [stringAt(declared[type], 'name')] : [])),
  );

/** A function and a custom tool are chosen by their type and name. */
const choosesDeclared = (body: Body): boolean => {
  const choice = body['tool_choice'];
  const type = stringAt(choice, 'type');
  if (!isRecord(choice) || (type !== 'function' && type !== 'custom')) return true;
  return namesOf(body, type).includes(stringAt(choice[type], 'name'));
};

const wantsJsonObject = ({ response_format: format }: Body): boolean =>
  isRecord(format) && format['type'] === 'json_object';

const rules: readonly Shape[] = [
  rule(
    `'tool_choice' is only allowed when 'tools' are specified.`,
    (body) => !isPresent(body, 'tool_choice') || isPresent(body, 'tools'),
  ),
  rule(
    `'parallel_tool_calls' is only allowed when 'tools' are specified.`,
    (body) => !isPresent(body, 'parallel_tool_calls') || isPresent(body, 'tools'),
  ),
  rule(`'tool_choice' names a function that is not in 'tools'.`, choosesDeclared),
  rule(
    `'tools' has two functions of one name.`,
    (body) => repeated(namesOf(body, 'function', 'custom')).length === 0,
  ),
  rule(
    `'stream_options' is only allowed when 'stream' is enabled.`,
    (body) => body['stream'] === true || (body['stream_options'] ?? null) === null,
  ),
  rule(
    `'max_tokens' and 'max_completion_tokens' exclude each other.`,
    (body) => !isPresent(body, 'max_tokens') || !isPresent(body, 'max_completion_tokens'),
  ),
  rule(
    `'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.`,
    (body) => !wantsJsonObject(body) || /json/i.test(JSON.stringify(body['messages'])),
  ),
  rule(
    `Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.`,
    (body) => !isReasoningModel(body) || (body['max_tokens'] ?? null) === null,
  ),
  rule(
    `Unsupported value: 'temperature' does not support other values than 1 with this model.`,
    (body) => !isReasoningModel(body) || (body['temperature'] ?? 1) === 1,
  ),
  rule(
    `Unsupported parameter: 'stop' is not supported with this model.`,
    (body) => !isReasoningModel(body) || (body['stop'] ?? null) === null,
  ),
];

/** Checks a request to `/chat/completions` as OpenAI does. https://platform.openai.com/docs/api-reference/chat/create */
export const checkChatRequest: CheckRequest = (headers, body, { allow = [] } = {}) => [
  ...jsonHeader(headers),
  ...also(shape, ...rules, chatPairing)(body, { path: '', allow }),
];
