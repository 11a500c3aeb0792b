import { describe, expect, it } from '@jest/globals';
import { type Message, type ModelRequest, textOf } from 'millrace';
import { checkResponsesRequest } from '@millrace/fault-server';
import { at, encodeSignature, type JsonRecord, listAt, textAt, toolNames } from '@millrace/wire';
import fc from 'fast-check';
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
import { responsesReader } from './responses-chunks.js';
import type { ResponsesTarget } from './responses-input.js';
import { responsesRequest } from './responses-request.js';
import { toolIds } from './tool-ids.js';
import { profiles } from './vendors.js';

const headers = { 'content-type': 'application/json', authorization: 'Bearer key' };
const names = toolNames(['weather', 'search_docs', 'a b']);

const bodyOf = (
  request: ModelRequest,
  given: Partial<ResponsesTarget> = {},
  extras = {},
): JsonRecord => {
  const target = { profile: profiles.openai, model: 'gpt-5', store: false, ...given };
  const write = responsesRequest(target, extras);
  const toolId = toolIds(request.messages);
  return fieldsOf(JSON.parse(write(request, { toolName: (name) => names.toWire(name), toolId })));
};

const inputOf = (
  messages: readonly Message[],
  given?: Partial<ResponsesTarget>,
): readonly unknown[] => listAt(bodyOf({ messages }, given), 'input');

const weather = {
  name: 'weather',
  description: 'Tells the weather.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
};

const reasoning = (id: string, encrypted_content: string | null = 'gAAA') => ({
  type: 'reasoning',
  id,
  summary: [],
  encrypted_content,
});

const thought = (item: unknown, vendor = 'OpenAI') =>
  ({ type: 'thinking', text: '', signature: encodeSignature(vendor, 'item', item) }) as const;

const signature = fc.oneof(
  fc.string(),
  fc.uuid().map((id) => encodeSignature('OpenAI', 'item', reasoning(`rs_${id}`))),
  fc.uuid().map((id) => encodeSignature('OpenAI', 'item', reasoning(`rs_${id}`, null))),
  fc
    .uuid()
    .map((id) => encodeSignature('OpenAI', 'item', { type: 'web_search_call', id: `ws_${id}` })),
);

describe('a request for responses', () => {
  it('X16: is valid no matter what was said before', () => {
    fc.assert(
      fc.property(conversations(signature, false), (messages) => {
        const body: unknown = bodyOf({ messages, tools: [weather] });
        expect(checkResponsesRequest(headers, body)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it('R4: says what an assistant said: text, tool uses, and reasoning as it came', () => {
    fc.assert(
      fc.property(conversations(signature, false), (messages) => {
        const toolId = toolIds(messages);
        const input = inputOf(messages);
        const output = input.map((item) => {
          const { role, content } = item as { role?: string; content?: unknown };
          return role === 'assistant'
            ? { type: 'message', content: [{ type: 'output_text', text: content }] }
            : item;
        });
        const source = {
          vendor: 'OpenAI',
          server: 'OpenAI',
          toolName: (name: string) => names.fromWire(name),
        };
        const read = told(responsesReader(source).readWhole({ status: 'completed', output }));
        const given = messages.flatMap((message) =>
          message.role === 'assistant' ? [message] : [],
        );
        const uses = given.flatMap(({ content }) =>
          content.flatMap((it) =>
            it.type === 'tool_call' ? [{ id: toolId(it.id), name: it.name, input: it.input }] : [],
          ),
        );
        expect(read.text).toBe(given.map(textOf).join(''));
        expect(JSON.stringify(read.uses)).toBe(JSON.stringify(uses));
        const signed = given.flatMap(({ content }) =>
          content.flatMap((it) => (it.type === 'thinking' ? [it.signature] : [])),
        );
        read.signatures.forEach((it) => expect(signed).toContain(it));
      }),
    );
  });

  it('stores nothing, and asks a model that reasons for its encrypted reasoning', () => {
    const messages = [user('Hi')];
    expect(bodyOf({ messages })).toEqual({
      model: 'gpt-5',
      input: [{ role: 'user', content: 'Hi' }],
      include: ['reasoning.encrypted_content'],
      store: false,
      stream: true,
    });
    expect(bodyOf({ messages }, { model: 'gpt-4o' })).not.toHaveProperty('include');
    expect(bodyOf({ messages }, { model: 'gpt-5-chat-latest' })).not.toHaveProperty('include');
    expect(bodyOf({ messages }, { store: true })).toMatchObject({ store: true });
  });

  it('R3: says every option in its field', () => {
    const outputSchema = { type: 'object', properties: {}, additionalProperties: false };
    const request: ModelRequest = {
      messages: [user('Hi')],
      system: 'Be brief.',
      tools: [weather],
      toolChoice: { name: 'weather' },
      temperature: 0.5,
      maxTokens: 100,
      outputSchema,
    };
    const extras = {
      reasoningEffort: 'low',
      reasoningSummary: 'auto',
      builtInTools: [{ type: 'web_search' }],
      body: { prompt_cache_key: 'k' },
    };
    const { description, inputSchema: parameters } = weather;
    expect(bodyOf(request, { model: 'gpt-4o' }, extras)).toEqual({
      model: 'gpt-4o',
      input: [{ role: 'user', content: 'Hi' }],
      instructions: 'Be brief.',
      tools: [
        { type: 'function', name: 'weather', description, parameters, strict: false },
        { type: 'web_search' },
      ],
      tool_choice: { type: 'function', name: 'weather' },
      temperature: 0.5,
      max_output_tokens: 100,
      text: {
        format: { type: 'json_schema', name: 'answer', schema: outputSchema, strict: true },
      },
      reasoning: { effort: 'low', summary: 'auto' },
      prompt_cache_key: 'k',
      store: false,
      stream: true,
    });
  });
});

describe('what is strict', () => {
  const open = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

  it('R3: is an answer of open objects too, which are closed', () => {
    expect(bodyOf({ messages: [user('Hi')], outputSchema: open })['text']).toMatchObject({
      format: { strict: true, schema: { ...open, additionalProperties: false } },
    });
  });

  it('X16: is no tool, unless the profile has it; and it is declared as the vendor takes it', () => {
    const tools = [
      { name: 'a', description: 'A.', inputSchema: open },
      { name: 'b', description: 'B.', inputSchema: { type: 'object' } },
      { name: 'c', description: 'C.', inputSchema: { ...open, anyOf: [open] } },
    ];
    const request = { messages: [user('Hi')], tools };
    expect(bodyOf(request)['tools']).toMatchObject([
      { strict: false, parameters: open },
      { strict: false, parameters: { type: 'object', properties: {} } },
      { strict: false },
    ]);
    expect(
      bodyOf(request, { profile: { name: 'Mine', strictTools: true } })['tools'],
    ).toMatchObject([
      { strict: true, parameters: { additionalProperties: false } },
      { strict: false },
      { strict: false },
    ]);
  });
});

describe('an item', () => {
  it('brings reasoning back before what it led to, as it came', () => {
    const item = { ...reasoning('rs_1'), summary: [{ type: 'summary_text', text: 'Hm.' }] };
    expect(inputOf([assistant(thought(item), use('c1')), results(['c1', 'rain'])])).toEqual([
      item,
      { type: 'function_call', call_id: 'c1', name: 'weather', arguments: '{"city":"Oslo"}' },
      { type: 'function_call_output', call_id: 'c1', output: 'rain' },
    ]);
  });

  it.each([
    ['led to nothing', [thought(reasoning('rs_1'))], {}],
    ['is of another vendor', [thought(reasoning('rs_1'), 'Azure OpenAI'), 'Hi'], {}],
    ['was not kept by us', [{ type: 'thinking', text: 'Hm.', signature: 'x' }, 'Hi'], {}],
    ['does not say what it was', [thought(reasoning('rs_1', null)), 'Hi'], {}],
    ['cannot be read by this model', [thought(reasoning('rs_1')), 'Hi'], { model: 'gpt-4o' }],
  ] as const)('leaves out reasoning that %s', (_why, content, given) => {
    const types = inputOf([assistant(...content)], given).map(
      (it) => (it as { type: string }).type,
    );
    expect(types).not.toContain('reasoning');
  });

  it('knows stored reasoning by its id, and open reasoning by its text', () => {
    const stored = assistant(thought(reasoning('rs_1', null)), 'Hi');
    expect(inputOf([stored], { store: true })).toHaveLength(2);
    const open = { ...reasoning('rs_1'), content: [{ type: 'reasoning_text', text: 'Hm.' }] };
    const given = { profile: { name: 'Mine' } };
    expect(inputOf([assistant(thought(open, 'Mine'), 'Hi')], given)).toHaveLength(2);
  });

  it('repeats what the vendor called text', () => {
    const called = (phase: string) =>
      ({
        type: 'thinking',
        text: '',
        signature: encodeSignature('OpenAI', 'phase', phase),
      }) as const;
    const message = assistant(called('commentary'), 'Let me look.', called('else'), 'Rain.');
    expect(inputOf([message])).toEqual([
      { role: 'assistant', content: 'Let me look.', phase: 'commentary' },
      { role: 'assistant', content: 'Rain.' },
    ]);
  });

  it('carries media of people and of tools in place', () => {
    const image = {
      type: 'input_image',
      detail: 'auto',
      image_url: 'data:image/png;base64,iVBORw0KGgo=',
    };
    const drew: Message = {
      id: 't',
      role: 'tool',
      content: [{ type: 'tool_result', toolCallId: 'c1', content: [picture], isError: false }],
    };
    expect(inputOf([user('Look:', picture), assistant(use('c1')), drew])).toMatchObject([
      { content: [{ type: 'input_text', text: 'Look:' }, image] },
      { type: 'function_call' },
      { output: [{ type: 'input_text', text: '(no text)' }, image] },
    ]);
    const data = { kind: 'url', url: 'data:application/pdf;base64,AA==' } as const;
    expect(inputOf([user({ type: 'file', source: data })])).toMatchObject([
      { content: [{ type: 'input_file', file_data: data.url, filename: 'file.pdf' }] },
    ]);
    const linked = { kind: 'url', url: 'https://example.com/a.pdf' } as const;
    expect(inputOf([user({ type: 'file', source: linked })])).toMatchObject([
      { content: [{ type: 'input_file', file_url: linked.url }] },
    ]);
  });

  it('C7: refuses a recording before anything is sent', () => {
    const source = { kind: 'base64', mediaType: 'audio/wav', data: 'AA==' } as const;
    expect(() => inputOf([user({ type: 'audio', source })])).toThrow(
      /'gpt-5' does not accept this audio block/u,
    );
  });
});

describe('functions that the vendor loads when it searches', () => {
  const deferred = (name: string) => ({
    ...{ ...weather, name },
    vendorOptions: { OpenAI: { defer_loading: true } },
  });
  const search = { type: 'tool_search' };
  const called = (name: string, namespace?: string): Message =>
    assistant({
      ...use('c', name),
      ...(namespace !== undefined && {
        vendorData: { vendor: 'OpenAI', data: { type: 'function_call', namespace } },
      }),
    });
  const toolsFor = (messages: readonly Message[], builtInTools: readonly object[] = [search]) =>
    listAt(
      bodyOf(
        { messages, tools: [deferred('weather'), deferred('search_docs')] },
        {},
        { builtInTools },
      ),
      'tools',
    ).map((it) => [textAt(it, 'name') || textAt(it, 'type'), at(it, 'defer_loading')]);

  it.each<[string, readonly Message[], readonly unknown[]]>([
    [
      'were not called',
      [user('Hi!')],
      [
        ['weather', true],
        ['search_docs', true],
        ['tool_search', undefined],
      ],
    ],
    [
      'were loaded, and called in their namespace',
      [called('weather', 'weather'), results(['c', '5'])],
      [
        ['weather', true],
        ['search_docs', true],
        ['tool_search', undefined],
      ],
    ],
    [
      'another vendor called, or were not deferred then: those are sent at once',
      [called('weather'), results(['c', '5'])],
      [
        ['weather', false],
        ['search_docs', true],
        ['tool_search', undefined],
      ],
    ],
    [
      'were all called so: nothing is left to search for',
      [called('weather'), results(['c', '5']), called('search_docs'), results(['c', '5'])],
      [
        ['weather', false],
        ['search_docs', false],
      ],
    ],
  ])('and that %s', (_, messages, expected) => {
    expect(toolsFor(messages)).toEqual(expected);
  });

  it('keep the search if a tool of the vendor can be found', () => {
    const server = { type: 'mcp', server_label: 's', defer_loading: true };
    const messages = ['weather', 'search_docs'].flatMap((name) => [
      called(name),
      results(['c', '5']),
    ]);
    expect(toolsFor(messages, [search, server]).slice(2)).toEqual([
      ['tool_search', undefined],
      ['mcp', true],
    ]);
  });
});
