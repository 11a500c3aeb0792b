import { describe, expect, it } from '@jest/globals';
import { isMillraceError, type Message, type ModelRequest, textOf } from 'millrace';
import { checkChatRequest } from '@millrace/fault-server';
import {
  encodeSignature,
  type JsonRecord,
  listAt,
  toolNames,
  type WireNames,
} from '@millrace/wire';
import fc from 'fast-check';
import { chatReader } from './chat-chunks.js';
import { chatRequest } from './chat-request.js';
import {
  assistant,
  conversations,
  picture,
  results,
  told,
  use,
  user,
} from './conversation.test-support.js';
import { fieldsOf } from './fields.js';
import type { Profile } from './profile.js';
import { toolIds } from './tool-ids.js';
import { profiles } from './vendors.js';

const headers = { 'content-type': 'application/json', authorization: 'Bearer key' };

const namingOf = (
  messages: readonly Message[],
  { toolIds: rule }: Profile = profiles.openai,
): WireNames => ({ toolName: (name) => names.toWire(name), toolId: toolIds(messages, rule) });

const names = toolNames(['weather', 'search_docs', 'a b']);

const bodyOf = (
  request: ModelRequest | readonly Message[],
  profile: Profile = profiles.openai,
  extras = {},
): JsonRecord => {
  const asked = 'messages' in request ? request : { messages: request };
  const write = chatRequest({ profile, model: 'gpt-4.1-mini' }, extras);
  return fieldsOf(JSON.parse(write(asked, namingOf(asked.messages, profile))));
};

const messagesOf = (
  messages: readonly Message[],
  profile: Profile = { name: 'Mine' },
): readonly unknown[] => listAt(bodyOf(messages, profile), 'messages');

const weather = {
  name: 'weather',
  description: 'Tells the weather.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

const signature = fc.oneof(
  fc.string(),
  fc.constant(encodeSignature('OpenAI', 'extra_content', { google: { thought_signature: 's' } })),
);

describe('a request for chat completions', () => {
  it('X16: is valid no matter what was said before', () => {
    const allow = ['extra_content', 'reasoning_content', 'reasoning_details'];
    fc.assert(
      fc.property(conversations(signature, true), (messages) => {
        const body = bodyOf({ messages, tools: [weather] });
        expect(checkChatRequest(headers, body, { allow })).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it('R4: says what an assistant said: text, tool uses, and what was kept for the vendor', () => {
    fc.assert(
      fc.property(conversations(signature, true), (messages) => {
        const { toolId } = namingOf(messages);
        const wire = messagesOf(messages, profiles.openai).filter(
          (message) => (message as { role: string }).role === 'assistant',
        );
        const read = wire.map((message) =>
          told(
            chatReader({
              vendor: 'OpenAI',
              server: 'OpenAI',
              toolName: (name) => names.fromWire(name),
            }).readWhole({
              choices: [{ index: 0, message, finish_reason: 'stop' }],
            }),
          ),
        );
        const given = messages.flatMap((message) =>
          message.role === 'assistant' ? [message] : [],
        );
        const uses = given.flatMap(({ content }) =>
          content.flatMap((it) =>
            it.type === 'tool_call' ? [{ id: toolId(it.id), name: it.name, input: it.input }] : [],
          ),
        );
        expect(read.map(({ text }) => text).join('')).toBe(given.map(textOf).join(''));
        // An empty name is as good as none.
        expect(JSON.stringify(read.flatMap((it) => it.uses))).toBe(JSON.stringify(uses));
      }),
    );
  });

  it('R3: holds the answer to a schema, strictly if the schema fits', () => {
    const schema = { type: 'object', properties: { city: { type: 'string' } } };
    const strict = { ...schema, required: ['city'], additionalProperties: false };
    const open = { ...schema, required: ['city'] };
    const formatOf = (outputSchema: object) =>
      bodyOf({ messages: [user('Hi')], outputSchema: { ...outputSchema } })['response_format'];
    expect(formatOf(schema)).toEqual({
      type: 'json_schema',
      json_schema: { name: 'answer', schema },
    });
    for (const fitting of [strict, open]) {
      expect(formatOf(fitting)).toEqual({
        type: 'json_schema',
        json_schema: { name: 'answer', schema: strict, strict: true },
      });
    }
  });

  it('says every option in its field, and nothing of an absent one', () => {
    const messages = [user('Hi')];
    expect(bodyOf(messages, { name: 'Mine' })).toEqual({
      model: 'gpt-4.1-mini',
      messages: [{ role: 'user', content: 'Hi' }],
      stream: true,
      stream_options: { include_usage: true },
    });
    const request = {
      messages,
      system: 'Be brief.',
      tools: [weather],
      toolChoice: { name: 'weather' },
      temperature: 0.5,
      maxTokens: 100,
      stopSequences: ['END'],
    };
    const { description, inputSchema: parameters } = weather;
    expect(
      bodyOf(request, { name: 'Mine' }, { reasoningEffort: 'low', body: { seed: 7, stream: 1 } }),
    ).toEqual({
      model: 'gpt-4.1-mini',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ],
      tools: [{ type: 'function', function: { name: 'weather', description, parameters } }],
      tool_choice: { type: 'function', function: { name: 'weather' } },
      temperature: 0.5,
      max_tokens: 100,
      stop: ['END'],
      reasoning_effort: 'low',
      seed: 7,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it('X16: declares tools as they are taken', () => {
    const choice = { anyOf: [{ required: ['city'] }] };
    const tools = [{ name: 'a', description: 'A.', inputSchema: { type: 'object', ...choice } }];
    expect(bodyOf({ messages: [user('Hi')], tools })['tools']).toMatchObject([
      { function: { parameters: { type: 'object', properties: {} } } },
    ]);
    expect(JSON.stringify(bodyOf({ messages: [user('Hi')], tools }))).not.toContain('"anyOf":');
  });

  it('X30: forces a custom tool by its own type', () => {
    const patch = { ...weather, name: 'patch', vendorOptions: { OpenAI: { type: 'custom' } } };
    const request = { messages: [user('Hi')], tools: [weather, patch] };
    expect(bodyOf({ ...request, toolChoice: { name: 'patch' } })['tool_choice']).toEqual({
      type: 'custom',
      custom: { name: 'patch' },
    });
    expect(bodyOf({ ...request, toolChoice: { name: 'weather' } })['tool_choice']).toEqual({
      type: 'function',
      function: { name: 'weather' },
    });
  });

  it('X8: offers all tools if the one that is forced is not there', () => {
    const request = { messages: [user('Hi')], tools: [weather], toolChoice: { name: 'other' } };
    expect(bodyOf(request, { name: 'Mine', takesNamedChoice: false })).toMatchObject({
      tools: [{ function: { name: 'weather' } }],
      tool_choice: 'required',
    });
  });

  it('never chooses among no tools, and never sends an empty list', () => {
    const body = bodyOf({
      messages: [user('Hi')],
      tools: [],
      toolChoice: 'none',
      stopSequences: [],
    });
    expect(Object.keys(body)).toEqual(['model', 'messages', 'stream_options', 'stream']);
  });
});

describe('a message', () => {
  it('leaves out an assistant that said nothing, and thinking', () => {
    const thought = { type: 'thinking', text: 'Hm.', signature: 'of another vendor' } as const;
    expect(messagesOf([user('Hi'), assistant(thought), assistant(), user('Hello?')])).toEqual([
      { role: 'user', content: 'Hi' },
      { role: 'user', content: 'Hello?' },
    ]);
  });

  it('leaves out texts that say nothing', () => {
    expect(messagesOf([user('', 'Hi', ''), user('', '')])).toEqual([
      { role: 'user', content: 'Hi' },
      { role: 'user', content: '' },
    ]);
  });

  it('puts the results of tools after the calls, a failure said as one', () => {
    const failed: Message = {
      id: 't',
      role: 'tool',
      content: [
        { type: 'tool_result', toolCallId: 'c1', content: [], isError: false },
        {
          type: 'tool_result',
          toolCallId: 'c2',
          content: [
            { type: 'text', text: 'No such' },
            { type: 'text', text: 'city.' },
          ],
          isError: true,
        },
      ],
    };
    expect(messagesOf([assistant(use('c1'), use('c2')), failed]).slice(1)).toEqual([
      { role: 'tool', tool_call_id: 'c1', content: '(no text)' },
      { role: 'tool', tool_call_id: 'c2', content: 'Error: No such\ncity.' },
    ]);
  });

  it('shows what tools drew after all of their results', () => {
    const drew: Message = {
      id: 't',
      role: 'tool',
      content: [
        { type: 'tool_result', toolCallId: 'c1', content: [picture], isError: false },
        {
          type: 'tool_result',
          toolCallId: 'c2',
          content: [{ type: 'text', text: 'rain' }],
          isError: false,
        },
      ],
    };
    expect(messagesOf([assistant(use('c1'), use('c2')), drew]).slice(1)).toEqual([
      { role: 'tool', tool_call_id: 'c1', content: '(no text)' },
      { role: 'tool', tool_call_id: 'c2', content: 'rain' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'From the tool call c1:' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
        ],
      },
    ]);
  });

  it('writes arguments that were no JSON as none', () => {
    const broken = {
      type: 'tool_call',
      id: 'c1',
      name: 'weather',
      input: {},
      invalidInput: '{"ci',
    } as const;
    expect(messagesOf([assistant(broken), results(['c1', 'Error: no JSON'])])[0]).toMatchObject({
      tool_calls: [{ function: { name: 'weather', arguments: '{}' } }],
    });
  });

  it('X8: says nothing beside tool calls as an empty text, and to OpenAI as null', () => {
    const messages = [assistant(use('c1')), results(['c1', 'rain'])];
    expect(messagesOf(messages)[0]).toHaveProperty('content', '');
    expect(messagesOf(messages, profiles.openai)[0]).toHaveProperty('content', null);
  });

  it.each([
    ['ada', { role: 'user', name: 'ada', content: 'Hi' }],
    ['Ada Lovelace', { role: 'user', content: 'Ada Lovelace: Hi' }],
  ])('says who speaks: %s', (name, expected) => {
    const message: Message = {
      id: 'u',
      role: 'user',
      name,
      content: [{ type: 'text', text: 'Hi' }],
    };
    expect(messagesOf([message], profiles.openai)).toEqual([expected]);
  });

  it.each([
    [
      'audio',
      { kind: 'base64', mediaType: 'audio/mpeg', data: 'AA==' },
      { input_audio: { data: 'AA==', format: 'mp3' } },
    ],
    [
      'audio',
      { kind: 'base64', mediaType: 'audio/x-wav', data: 'AA==' },
      { input_audio: { data: 'AA==', format: 'wav' } },
    ],
    [
      'file',
      { kind: 'base64', mediaType: 'application/pdf', data: 'AA==' },
      { file: { filename: 'file.pdf', file_data: 'data:application/pdf;base64,AA==' } },
    ],
    [
      'image',
      { kind: 'url', url: 'https://example.com/a.png' },
      { image_url: { url: 'https://example.com/a.png' } },
    ],
    [
      'image',
      { kind: 'base64', mediaType: 'image/jpg', data: 'AA==' },
      { image_url: { url: 'data:image/jpeg;base64,AA==' } },
    ],
    [
      'image',
      { kind: 'url', url: 'data:image/jpg;base64,AA==' },
      { image_url: { url: 'data:image/jpeg;base64,AA==' } },
    ],
    [
      'audio',
      { kind: 'url', url: 'data:audio/wav;base64,AA==' },
      { input_audio: { data: 'AA==', format: 'wav' } },
    ],
    [
      'file',
      { kind: 'url', url: 'data:application/pdf;base64,AA==' },
      { file: { filename: 'file.pdf', file_data: 'data:application/pdf;base64,AA==' } },
    ],
  ] as const)('carries media: %s %j', (type, source, expected) => {
    expect(messagesOf([user({ type, source })])[0]).toMatchObject({ content: [expected] });
  });

  it.each([
    ['audio', { kind: 'base64', mediaType: 'audio/flac', data: 'AA==' }, {}],
    ['audio', { kind: 'url', url: 'https://example.com/a.mp3' }, {}],
    ['file', { kind: 'url', url: 'https://example.com/a.pdf' }, {}],
    ['image', { kind: 'url', url: 'https://example.com/a.png' }, { media: [] }],
  ] as const)('C7: refuses media that cannot be sent: %s %j', (type, source, profile) => {
    const write = () => messagesOf([user({ type, source })], { name: 'Mine', ...profile });
    expect(write).toThrow(new RegExp(`'gpt-4.1-mini' does not accept this ${type} block`, 'u'));
    try {
      write();
    } catch (error) {
      expect(isMillraceError(error) && error.code).toBe('invalidRequest');
    }
  });
});
