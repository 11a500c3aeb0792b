import { describe, expect, it } from '@jest/globals';
import { type Case, changed, jsonHeaders } from './cases.test-support.js';
import { checkMessagesRequest } from './check-messages-request.js';

const headers = { ...jsonHeaders, 'anthropic-version': '2026-10-21' };
const olderHeaders = { ...jsonHeaders, 'anthropic-version': '2023-06-01' };

const user = { role: 'user', content: 'Hello?' };
const assistant = (...content: readonly unknown[]) => ({ role: 'assistant', content });
const says = (...content: readonly unknown[]) => ({ role: 'user', content });
const text = (words: string) => ({ type: 'text', text: words });
const use = (id: string, input: unknown = {}) => ({ type: 'tool_use', id, name: 'weather', input });
const result = (id: string, fields: object = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  content: '4',
  ...fields,
});
const search = { type: 'server_tool_use', id: 's', name: 'web_search', input: {} };
const found = { type: 'web_search_tool_result', tool_use_id: 's', content: [] };
const thought = { type: 'thinking', thinking: 'Hm.', signature: 'Eq==' };
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } };
const cache = { cache_control: { type: 'ephemeral' } };
const tool = { name: 'weather', description: 'Tells it.', input_schema: { type: 'object' } };

const good = {
  model: 'claude-sonnet-4-5',
  max_tokens: 2000,
  stream: true,
  system: [{ ...text('Be kind.'), cache_control: { type: 'ephemeral', ttl: '1h' } }],
  tools: [
    { ...tool, ...cache },
    { type: 'web_search_20250305', name: 'web_search' },
  ],
  tool_choice: { type: 'auto' },
  stop_sequences: ['.'],
  thinking: { type: 'enabled', budget_tokens: 1024 },
  output_config: {
    effort: 'low',
    format: { type: 'json_schema', schema: { type: 'object', additionalProperties: false } },
  },
  messages: [
    user,
    says(image, {
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: 'a' },
    }),
    assistant(thought, text('Let me look.'), use('a'), use('b')),
    says(result('b', { content: [text('4'), image] }), result('a', { is_error: true })),
    says({ ...text('And?'), ...cache }),
    assistant({ type: 'redacted_thinking', data: 'Eq==' }, use('c')),
    says(result('c', { content: '' }), { ...text('Go on.'), ...cache }),
  ],
};

const plain = { thinking: undefined };
const messages = (...list: readonly unknown[]) => ({ ...plain, messages: list });

const cases: readonly Case[] = [
  ['no limit', { max_tokens: undefined }, `Missing required parameter: 'max_tokens'`],
  ['an unknown field', { n: 1 }, `Unknown parameter: 'n'`],
  ['a temperature', { ...plain, temperature: 1 }, `Unknown parameter: 'temperature'`],
  ['little thinking', { thinking: { type: 'enabled', budget_tokens: 1000 } }, 'budget_tokens'],
  ['much thinking', { thinking: { type: 'enabled', budget_tokens: 2000 } }, 'must be greater'],
  [
    'a forced choice with thinking',
    { tool_choice: { type: 'any' } },
    'Thinking may not be enabled',
  ],
  [
    'a forced tool with adaptive thinking',
    { thinking: { type: 'adaptive' }, tool_choice: { type: 'tool', name: 'weather' } },
    'Thinking may not be enabled',
  ],
  [
    'a forced choice of a model that always thinks',
    { ...plain, model: 'claude-opus-5-5', tool_choice: { type: 'any' } },
    'Thinking may not be enabled',
  ],
  [
    'a property with a space in its name',
    { tools: [{ ...tool, input_schema: { type: 'object', properties: { 'a b': {} } } }] },
    'Property keys should match',
  ],
  ['a choice as of OpenAI', { tool_choice: 'auto' }, `Invalid type for 'tool_choice'`],
  ['a choice without tools', { tools: undefined }, 'tool_choice may only be specified'],
  [
    'a choice of no tool',
    { ...plain, tool_choice: { type: 'tool', name: 'x' } },
    'names a tool that is not',
  ],
  ['no tools', { tools: [] }, `Invalid 'tools'`],
  ['two tools of one name', { tools: [tool, tool] }, 'Tool names must be unique'],
  ['a tool with a bad name', { tools: [{ ...tool, name: 'a.b' }] }, 'tools[0].name'],
  [
    'a schema of no object',
    { tools: [{ ...tool, input_schema: { type: 'string' } }] },
    `'type' must be 'object'`,
  ],
  [
    'a schema with a choice at its root',
    { tools: [{ ...tool, input_schema: { type: 'object', oneOf: [] } }] },
    'does not support oneOf',
  ],
  [
    'an open schema of the answer',
    { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
    `'additionalProperties' must be false`,
  ],
  [
    'a range in the schema of the answer',
    {
      output_config: {
        format: {
          type: 'json_schema',
          schema: {
            type: 'object',
            additionalProperties: false,
            properties: { a: { minimum: 1 } },
          },
        },
      },
    },
    `'minimum' is not permitted`,
  ],
  ['a blank stop sequence', { stop_sequences: ['\n'] }, 'stop_sequences[0]'],
  ['an empty block of the system', { system: [text('')] }, 'system[0].text'],
  [
    'five marks',
    { system: [text('a'), text('b')].map((block) => ({ ...block, ...cache })) },
    'A maximum of 4 blocks',
  ],
  [
    'citations of the user',
    messages(says({ ...text('a'), citations: [{}] })),
    'messages[0].content[0].citations',
  ],
  ['no messages', messages(), `Invalid 'messages'`],
  ['a role of OpenAI', messages({ role: 'tool', content: '4' }), 'messages[0].role'],
  [
    'an assistant that begins',
    messages(assistant(text('Hello.')), user),
    `first message must use the 'user' role`,
  ],
  ['an empty message', messages({ role: 'user', content: '' }), 'messages[0].content'],
  ['a message without blocks', messages(says()), 'messages[0].content'],
  ['a blank text', messages(says(text(' \n'))), 'messages[0].content[0].text'],
  [
    'a part of OpenAI',
    messages(says({ type: 'image_url', image_url: {} })),
    'messages[0].content[0].type',
  ],
  [
    'an image of another type',
    messages(says({ ...image, source: { ...image.source, media_type: 'image/tiff' } })),
    'media_type',
  ],
  ['an image that the model says', messages(user, assistant(image)), 'messages[1].content[0].type'],
  [
    'a thought without a signature',
    messages(user, assistant({ type: 'thinking', thinking: 'Hm.' }, text('a'))),
    `Missing required parameter: 'messages[1].content[0].signature'`,
  ],
  [
    'a thought with an empty signature',
    messages(user, assistant({ ...thought, signature: '' }, text('a'))),
    'signature',
  ],
  [
    'a marked thought',
    messages(user, assistant({ ...thought, ...cache }, text('a'))),
    'cache_control',
  ],
  ['an end in white space', messages(user, assistant(text('Sunny. '))), 'trailing whitespace'],
  [
    'a tool use with a bad id',
    messages(user, assistant(use('a:b')), says(result('a:b'))),
    'messages[1].content[0].id',
  ],
  [
    'an input that is a text',
    messages(user, assistant(use('a', '{}')), says(result('a'))),
    'messages[1].content[0].input',
  ],
  [
    'no result',
    messages(user, assistant(use('a'))),
    `without 'tool_result' blocks immediately after: a`,
  ],
  [
    'a result too few',
    messages(user, assistant(use('a'), use('b')), says(result('a'))),
    'immediately after: b',
  ],
  [
    'a result too late',
    messages(user, assistant(use('a')), user, assistant(text('b')), says(result('a'))),
    'immediately after: a',
  ],
  ['a result of nothing', messages(says(result('a'))), `unexpected 'tool_use_id'`],
  [
    'a result twice',
    messages(user, assistant(use('a')), says(result('a'), result('a'))),
    'must have a single result',
  ],
  [
    'a result behind a text',
    messages(user, assistant(use('a')), says(text('b'), result('a'))),
    'blocks must come first',
  ],
  [
    'a result in a message behind a text',
    messages(user, assistant(use('a')), user, says(result('a'))),
    'blocks must come first',
  ],
  [
    'an id twice',
    messages(user, assistant(use('a')), says(result('a')), assistant(use('a')), says(result('a'))),
    'ids must be unique',
  ],
  [
    'an empty text as a result',
    messages(user, assistant(use('a')), says(result('a', { content: [text('')] }))),
    'content[0].content[0].text',
  ],
  [
    'an error that says nothing',
    messages(user, assistant(use('a')), says(result('a', { is_error: true, content: [] }))),
    'content cannot be empty',
  ],
  [
    'an error that shows something',
    messages(user, assistant(use('a')), says(result('a', { is_error: true, content: [image] }))),
    `all content must be type 'text'`,
  ],
  [
    'a search without its result',
    messages(user, assistant(search, text('b')), user),
    `'web_search' tool use with id 's' was found without a corresponding`,
  ],
  [
    'the result of no search',
    messages(user, assistant(found)),
    `unexpected 'tool_use_id' found in 'web_search_tool_result' blocks: s`,
  ],
  [
    'a result in the next answer',
    messages(user, assistant(search), user, assistant(found)),
    `unexpected 'tool_use_id' found in`,
  ],
  [
    'a caller that is no call',
    messages(user, assistant({ ...use('a'), caller: { tool_id: 's' } }), says(result('a'))),
    `'caller' is no call: s`,
  ],
  [
    'a turn that goes on without its thought',
    { messages: [user, assistant(use('a')), says(result('a'))] },
    `Expected 'thinking' or 'redacted_thinking', but found 'tool_use'`,
  ],
];

describe('checkMessagesRequest', () => {
  it('X16: takes what the vendor takes', () => {
    expect(checkMessagesRequest(headers, good)).toEqual([]);
    const least = { model: 'm', max_tokens: 1, messages: [user, assistant(text('So'))] };
    expect(checkMessagesRequest(headers, least)).toEqual([]);
    const later = [user, assistant(use('a')), says(result('a')), assistant(text('b')), user];
    expect(checkMessagesRequest(headers, { ...good, messages: later })).toEqual([]);
    const open = [user, assistant(search)];
    const answered = [user, assistant(search, use('a')), says(result('a')), assistant(found), user];
    for (const list of [open, answered]) {
      expect(checkMessagesRequest(headers, { ...good, ...messages(...list) })).toEqual([]);
    }
  });

  it.each(cases)('X16: refuses %s', (_, change, words) => {
    expect(checkMessagesRequest(headers, changed(good, change)).join('\n')).toContain(words);
  });

  it('X16: refuses a request without its version', () => {
    for (const version of [{}, { 'anthropic-version': '2020-01-01' }]) {
      expect(checkMessagesRequest({ ...jsonHeaders, ...version }, good)).toEqual([
        'anthropic-version: header is required, with a valid version.',
      ]);
    }
  });

  it('X16: takes a temperature in the older version, but a hot one and one with thinking', () => {
    const check = (change: object) => checkMessagesRequest(olderHeaders, changed(good, change));
    expect(check({ ...plain, temperature: 1, top_p: 1, top_k: 5 })).toEqual([]);
    expect(check({ ...plain, temperature: 1.1 }).join()).toContain(
      `Invalid value for 'temperature'`,
    );
    expect(check({ temperature: 0.5 }).join()).toContain(`'temperature' may only be set to 1`);
  });
});
