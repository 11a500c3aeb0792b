import { describe, expect, it } from '@jest/globals';
import { checkChatRequest } from './check-chat-request.js';
import { changed, type Case, jsonHeaders } from './cases.test-support.js';

const call = (id: string, args: unknown = '{}', name = 'weather') => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});
const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: '4' });
const user = { role: 'user', content: 'Hello?' };
const tool = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'Tells the weather.',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    },
    strict: true,
  },
};

const good = {
  model: 'gpt-4.1',
  stream: true,
  stream_options: { include_usage: true },
  max_completion_tokens: 100,
  temperature: 2,
  stop: ['.'],
  tools: [tool],
  tool_choice: { type: 'function', function: { name: 'weather' } },
  parallel_tool_calls: true,
  response_format: {
    type: 'json_schema',
    json_schema: { name: 'answer', schema: { type: 'object', additionalProperties: true } },
  },
  messages: [
    { role: 'developer', content: 'Be kind.' },
    {
      role: 'user',
      name: 'Ann',
      content: [
        { type: 'text', text: 'Look.' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
        { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
        {
          type: 'file',
          file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' },
        },
      ],
    },
    { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] },
    result('b'),
    result('a'),
    { role: 'assistant', content: 'Sunny.' },
    user,
  ],
};

const messages = (...list: readonly unknown[]) => ({ messages: list });
const asks = (...calls: readonly unknown[]) => ({ role: 'assistant', tool_calls: calls });
const strict = (parameters: unknown) => ({
  tools: [{ type: 'function', function: { name: 'weather', strict: true, parameters } }],
});
const schema = (value: unknown) => ({
  response_format: {
    type: 'json_schema',
    json_schema: { name: 'answer', strict: true, schema: value },
  },
});

const cases: readonly Case[] = [
  ['no model', { model: undefined }, `Missing required parameter: 'model'`],
  ['no messages', { messages: [] }, `Invalid 'messages': an array of 0`],
  ['an unknown field', { top_k: 1 }, `Unknown parameter: 'top_k'`],
  ['a hot temperature', { temperature: 2.1 }, `Invalid value for 'temperature'`],
  ['five stop sequences', { stop: ['1', '2', '3', '4', '5'] }, `Invalid 'stop'`],
  ['no tools', { tools: [] }, `Invalid 'tools'`],
  ['a choice without tools', { tools: undefined }, `'tool_choice' is only allowed`],
  [
    'parallel calls without tools',
    { tools: undefined, tool_choice: undefined },
    `'parallel_tool_calls' is only`,
  ],
  [
    'a choice of no tool',
    { tool_choice: { type: 'function', function: { name: 'x' } } },
    'names a function',
  ],
  [
    'a custom tool chosen as a function',
    {
      tools: [{ type: 'custom', custom: { name: 'patch' } }],
      tool_choice: { type: 'function', function: { name: 'patch' } },
    },
    'names a function',
  ],
  ['an unknown choice', { tool_choice: 'any' }, 'expected one of none, auto, required'],
  ['two tools of one name', { tools: [tool, tool] }, 'two functions of one name'],
  ['a tool without type', { tools: [{ name: 'x' }] }, 'tools[0].type'],
  [
    'a tool with a bad name',
    { tools: [{ type: 'function', function: { name: 'a.b' } }] },
    'tools[0].function.name',
  ],
  [
    'a list as parameters',
    { tools: [{ type: 'function', function: { name: 'a', parameters: { type: 'array' } } }] },
    'must be a JSON Schema of',
  ],
  [
    'parameters without properties',
    { tools: [{ type: 'function', function: { name: 'a', parameters: { type: 'object' } } }] },
    'object schema missing properties',
  ],
  [
    'a choice of parameters',
    {
      tools: [
        {
          type: 'function',
          function: { name: 'a', parameters: { type: 'object', properties: {}, anyOf: [] } },
        },
      ],
    },
    `must not have 'oneOf'/'anyOf'`,
  ],
  [
    'an open strict schema',
    strict({ type: 'object', properties: { a: {} }, required: ['a'] }),
    `'additionalProperties' must be false`,
  ],
  [
    'an optional property in a strict schema',
    strict({ type: 'object', properties: { a: {} }, additionalProperties: false }),
    `'required' must name every property`,
  ],
  [
    'an open schema within a strict one',
    schema({
      type: 'object',
      properties: { a: { type: 'array', items: { type: 'object' } } },
      required: ['a'],
      additionalProperties: false,
    }),
    'schema.properties.a.items',
  ],
  [
    'a keyword that strict schemas lack',
    schema({
      type: 'object',
      properties: { a: { type: 'string', minLength: 1 } },
      required: ['a'],
      additionalProperties: false,
    }),
    `'minLength' is not permitted`,
  ],
  [
    'a choice at the root of a strict schema',
    schema({ type: 'object', anyOf: [], additionalProperties: false }),
    `'anyOf' is not permitted at the root`,
  ],
  [
    'a format with a bad name',
    { response_format: { type: 'json_schema', json_schema: { name: 'a b', schema: {} } } },
    'json_schema.name',
  ],
  [
    'JSON without the word',
    { ...messages(user), response_format: { type: 'json_object' } },
    `must contain the word 'json'`,
  ],
  ['stream options without a stream', { stream: false }, `'stream_options' is only allowed`],
  ['both limits', { max_tokens: 1 }, 'exclude each other'],
  [
    'a limit that a reasoning model lacks',
    {
      model: 'gpt-5-mini',
      temperature: 1,
      stop: undefined,
      max_completion_tokens: undefined,
      max_tokens: 9,
    },
    'max_completion_tokens',
  ],
  ['a temperature for a reasoning model', { model: 'o3', stop: undefined }, 'temperature'],
  [
    'a stop for a reasoning model',
    { model: 'o4-mini', temperature: undefined },
    `'stop' is not supported`,
  ],
  ['an unknown role', messages({ role: 'bot', content: '' }), 'messages[0].role'],
  ['a message that is none', messages('Hello?'), `Invalid type for 'messages[0]'`],
  [
    'an unknown field of a message',
    messages({ ...user, id: '1' }),
    `Unknown parameter: 'messages[0].id'`,
  ],
  ['no content', messages({ role: 'user' }), `Missing required parameter: 'messages[0].content'`],
  ['empty content', messages({ role: 'user', content: [] }), `Invalid 'messages[0].content'`],
  [
    'an unknown part',
    messages({ role: 'user', content: [{ type: 'video' }] }),
    'messages[0].content[0].type',
  ],
  [
    'an image that is no address',
    messages({ role: 'user', content: [{ type: 'image_url', image_url: { url: 'AAAA' } }] }),
    'a base64 data URL',
  ],
  [
    'a file without a name',
    messages({
      role: 'user',
      content: [{ type: 'file', file: { file_data: 'data:a/b;base64,AA==' } }],
    }),
    `needs 'file_id'`,
  ],
  ['a name with a space', messages({ ...user, name: 'Ann B' }), 'messages[0].name'],
  [
    'an image of the system',
    messages({ role: 'system', content: [{ type: 'image_url', image_url: { url: 'https://a' } }] }),
    'messages[0].content[0].type',
  ],
  [
    'an assistant that says nothing',
    messages(user, { role: 'assistant', content: null }),
    `needs 'content' or 'tool_calls'`,
  ],
  ['no calls', messages(user, asks()), 'tool_calls'],
  [
    'arguments that are an object',
    messages(user, asks(call('a', {})), result('a')),
    'expected a string that holds JSON',
  ],
  [
    'arguments that are no JSON',
    messages(user, asks(call('a', '{')), result('a')),
    'expected a string that holds JSON',
  ],
  [
    'a call with a bad name',
    messages(user, asks(call('a', '{}', 'a b')), result('a')),
    'function.name',
  ],
  [
    'a long id',
    messages(user, asks(call('a'.repeat(41))), result('a'.repeat(41))),
    'tool_calls[0].id',
  ],
  ['no result', messages(user, asks(call('a'))), 'did not have response messages: a'],
  [
    'a result too few',
    messages(user, asks(call('a'), call('b')), result('a')),
    'did not have response messages: b',
  ],
  [
    'a result too late',
    messages(user, asks(call('a')), user, result('a')),
    'did not have response messages: a',
  ],
  ['a result of nothing', messages(user, result('a')), 'must be a response to a call'],
  [
    'a result twice',
    messages(user, asks(call('a')), result('a'), result('a')),
    'must be a response to a call',
  ],
  [
    'an id twice',
    messages(user, asks(call('a')), result('a'), asks(call('a')), result('a')),
    `Duplicate tool call id 'a'`,
  ],
  [
    'an image as a result',
    messages(user, asks(call('a')), { ...result('a'), content: [{ type: 'image_url' }] }),
    'messages[2].content[0].type',
  ],
];

describe('checkChatRequest', () => {
  it('X16: takes what the vendor takes', () => {
    expect(checkChatRequest(jsonHeaders, good)).toEqual([]);
    expect(checkChatRequest(jsonHeaders, { model: 'm', messages: [user] })).toEqual([]);
    expect(
      checkChatRequest(jsonHeaders, { ...good, ...messages({ role: 'assistant', content: '' }) }),
    ).toEqual([]);
  });

  it.each(cases)('X16: refuses %s', (_, change, words) => {
    expect(checkChatRequest(jsonHeaders, changed(good, change)).join('\n')).toContain(words);
  });

  it('X16: refuses what is no JSON', () => {
    expect(checkChatRequest({}, good)).toEqual(['The Content-Type must be application/json.']);
    expect(checkChatRequest(jsonHeaders, 'text')).toHaveLength(1);
  });

  it('lets the fields of a profile pass, at any depth', () => {
    const thought = { role: 'assistant', content: 'Hm.', reasoning_content: 'I think.' };
    const body = { model: 'm', messages: [user, thought], enable_thinking: true };
    expect(checkChatRequest(jsonHeaders, body)).toHaveLength(2);
    const allow = ['reasoning_content', 'enable_thinking'];
    expect(checkChatRequest(jsonHeaders, body, { allow })).toEqual([]);
  });
});
