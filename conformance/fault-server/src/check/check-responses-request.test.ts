import { describe, expect, it } from '@jest/globals';
import { type Case, changed, jsonHeaders } from './cases.test-support.js';
import { checkResponsesRequest } from './check-responses-request.js';

const user = { role: 'user', content: 'Hello?' };
const call = (id: string, args: unknown = '{}') => ({
  type: 'function_call',
  call_id: id,
  name: 'weather',
  arguments: args,
});
const result = (id: string) => ({ type: 'function_call_output', call_id: id, output: '4' });
const thought = (id = 'rs_1', content: unknown = 'gAAA') => ({
  type: 'reasoning',
  id,
  summary: [{ type: 'summary_text', text: 'Hm.' }],
  encrypted_content: content,
});
const said = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'Sunny.', annotations: [] }],
};
const tool = {
  type: 'function',
  name: 'weather',
  parameters: { type: 'object', properties: {} },
  strict: false,
};

const good = {
  model: 'gpt-5',
  instructions: 'Be kind.',
  store: false,
  stream: true,
  include: ['reasoning.encrypted_content'],
  max_output_tokens: 16,
  tools: [tool, { type: 'web_search', filters: {} }],
  tool_choice: { type: 'function', name: 'weather' },
  text: { format: { type: 'json_schema', name: 'answer', schema: { type: 'object' } } },
  reasoning: { effort: 'low', summary: 'auto' },
  input: [
    {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: 'Look.' },
        { type: 'input_image', image_url: 'https://a/b.png', detail: 'auto' },
        { type: 'input_file', file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' },
      ],
    },
    thought('rs_1'),
    call('a'),
    call('b'),
    result('a'),
    { ...result('b'), output: [{ type: 'input_text', text: '4' }] },
    thought('rs_2'),
    said,
    { type: 'web_search_call', id: 'ws_1', status: 'completed' },
    { role: 'assistant', content: 'More.' },
    user,
  ],
};

const input = (...list: readonly unknown[]) => ({ input: list });

const cases: readonly Case[] = [
  ['no input', { input: [] }, `Invalid 'input'`],
  ['an unknown field', { messages: [] }, `Unknown parameter: 'messages'`],
  ['few tokens', { max_output_tokens: 15 }, 'expected an integer from 16'],
  ['a temperature for a reasoning model', { temperature: 0 }, 'temperature'],
  ['a choice without tools', { tools: undefined }, `'tool_choice' is only allowed`],
  ['a choice of no tool', { tool_choice: { type: 'function', name: 'x' } }, 'names a function'],
  [
    'a function chosen as a custom tool',
    { tool_choice: { type: 'custom', name: 'weather' } },
    'names a function',
  ],
  [
    'a custom tool chosen as a function',
    {
      tools: [{ type: 'custom', name: 'patch' }],
      tool_choice: { type: 'function', name: 'patch' },
    },
    'names a function',
  ],
  ['no tools', { tools: [] }, `Invalid 'tools'`],
  ['two tools of one name', { tools: [tool, tool] }, 'two functions of one name'],
  [
    'a tool as for chat',
    { tools: [{ type: 'function', function: { name: 'a' } }] },
    `Missing required parameter: 'tools[0].name'`,
  ],
  [
    'parameters without properties',
    { tools: [{ type: 'function', name: 'a', parameters: { type: 'object' } }] },
    'object schema missing properties',
  ],
  [
    'a choice of parameters',
    {
      tools: [
        { type: 'function', name: 'a', parameters: { type: 'object', properties: {}, anyOf: [] } },
      ],
    },
    `must not have 'oneOf'/'anyOf'`,
  ],
  [
    'a format as for chat',
    { text: { format: { type: 'json_schema', json_schema: {} } } },
    `Unknown parameter: 'text.format.json_schema'`,
  ],
  [
    'an open strict schema',
    {
      text: {
        format: { type: 'json_schema', name: 'a', strict: true, schema: { type: 'object' } },
      },
    },
    `'additionalProperties' must be false`,
  ],
  [
    'stream options without a stream',
    { stream: false, stream_options: { include_obfuscation: false } },
    `'stream_options' is only allowed`,
  ],
  ['something unknown to include', { include: ['all'] }, 'include[0]'],
  [
    'a part of the output as input',
    input({ role: 'user', content: [{ type: 'output_text', text: '' }] }),
    'input[0].content[0].type',
  ],
  [
    'a part of the input as output',
    input({ role: 'assistant', content: [{ type: 'input_text', text: '' }] }),
    'input[0].content[0].type',
  ],
  [
    'an image that is nowhere',
    input({ role: 'user', content: [{ type: 'input_image', detail: 'auto' }] }),
    `needs 'image_url' or 'file_id'`,
  ],
  [
    'a file that is nowhere',
    input({ role: 'user', content: [{ type: 'input_file' }] }),
    `needs 'file_id'`,
  ],
  [
    'an id of another kind',
    input(user, { ...call('a'), id: 'call_1' }, result('a')),
    `an ID that begins with 'fc'`,
  ],
  [
    'a message with an id of another kind',
    input({ ...said, id: 'chatcmpl_1' }),
    `an ID that begins with 'msg'`,
  ],
  [
    'arguments that are an object',
    input(call('a', {}), result('a')),
    'expected a string that holds JSON',
  ],
  ['a long id', input(call('a'.repeat(65)), result('a'.repeat(65))), 'input[0].call_id'],
  ...[
    'custom_tool_call',
    'shell_call',
    'local_shell_call',
    'computer_call',
    'apply_patch_call',
  ].map((type): Case => [
    `a ${type} without its output`,
    input(user, { type, call_id: 'a' }),
    `No tool output found for ${type.replaceAll('_', ' ')} a.`,
  ]),
  [
    'an approval without a request',
    input(user, { type: 'mcp_approval_response', approval_request_id: 'a', approve: true }),
    'No tool call found for mcp approval request output with call_id a.',
  ],
  [
    'an output of another kind of call',
    input({ type: 'shell_call', call_id: 'a' }, result('a')),
    'No tool call found for function call output',
  ],
  ['no result', input(call('a')), 'No tool output found for function call a.'],
  [
    'a result before its call',
    input(result('a'), call('a')),
    'No tool call found for function call output with call_id a.',
  ],
  ['a result twice', input(call('a'), result('a'), result('a')), 'No tool call found'],
  [
    'an id twice',
    input(call('a'), result('a'), call('a'), result('a')),
    `Duplicate function call id 'a'`,
  ],
  ['a thought at the end', input(user, thought()), 'without its required following item'],
  ['a thought before a user', input(thought(), user), 'without its required following item'],
  ['a thought that is not stored', input(thought('rs_1', null), said), 'Items are not persisted'],
  ['a thought without asking for the next', { include: undefined }, `'include' must hold`],
  ['an item twice', input(said, said), 'Duplicate item found with id msg_1'],
];

describe('checkResponsesRequest', () => {
  it('X16: takes what the vendor takes', () => {
    expect(checkResponsesRequest(jsonHeaders, good)).toEqual([]);
    expect(checkResponsesRequest(jsonHeaders, { model: 'gpt-5', input: 'Hello?' })).toEqual([]);
    const stored = {
      ...good,
      store: true,
      include: undefined,
      ...input(thought('rs_1', null), said),
    };
    expect(checkResponsesRequest(jsonHeaders, stored)).toEqual([]);
  });

  it.each(cases)('X16: refuses %s', (_, change, words) => {
    expect(checkResponsesRequest(jsonHeaders, changed(good, change)).join('\n')).toContain(words);
  });
});
