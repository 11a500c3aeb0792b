import { describe, expect, it } from '@jest/globals';
import type { AssistantBlock, ContentBlock, Message, ToolResultBlock, UserMessage } from 'millrace';
import { parsedJson } from 'millrace/values';
import { listAt, rawJsonList, stringifyObject, toWireId } from '@millrace/wire';
import fc from 'fast-check';
import { conversation } from './conversations.test-support.js';
import { createMarkBudget } from './cache-marks.js';
import { messageBlocks } from './message-blocks.js';
import { inTurns, toPart, turnText } from './turns.js';
import { wireMessages } from './wire-messages.js';

const naming = { toolName: (name: string) => name, toolId: toWireId };
const text = (it: string): ContentBlock => ({ type: 'text', text: it });
const user = (...content: readonly ContentBlock[]): UserMessage => ({
  id: 'u',
  role: 'user',
  content,
});
const assistant = (...content: readonly AssistantBlock[]): Message => ({
  id: 'a',
  role: 'assistant',
  name: 'helper',
  content,
});
const tool = (...content: readonly ToolResultBlock[]): Message => ({
  id: 't',
  role: 'tool',
  content,
});
const use = (id: string): AssistantBlock => ({ type: 'tool_call', id, name: 'weather', input: {} });
const result = (toolCallId: string, ...content: readonly ContentBlock[]): ToolResultBlock => ({
  type: 'tool_result',
  toolCallId,
  content,
  isError: false,
  details: { secret: true },
});
const picture: ContentBlock = { type: 'image', source: { kind: 'url', url: 'https://a.b/c.png' } };
const wire = (...messages: readonly Message[]): unknown => {
  const { settled, open } = wireMessages()(messages, naming);
  const budget = createMarkBudget({ body: {}, tools: [] }, undefined);
  const items = [...settled(budget), ...open.map(turnText)];
  const body = stringifyObject({ messages: rawJsonList(items) });
  return listAt(parsedJson(body), 'messages');
};
const invalid = (message: string): unknown =>
  expect.objectContaining({ code: 'invalidRequest', message: expect.stringContaining(message) });

/** All turns of a conversation, without regard to what comes first and last. */
const inOneGo = (messages: readonly Message[]): readonly unknown[] =>
  inTurns(messages, (message) => messageBlocks(message, naming).map(toPart)).map((turn) =>
    parsedJson(turnText(turn)),
  );

describe('a conversation on the wire', () => {
  it('X16: is the same in pages as in one go', () => {
    const long = fc.array(conversation, { maxLength: 8 }).map((it) => it.flat());
    fc.assert(
      fc.property(long, (messages) => {
        const asked = [user(text('Hi')), ...messages, user(text('On.'))];
        expect(wire(...asked)).toEqual(inOneGo(asked));
        const begun = [assistant(text('Hello!')), ...messages, user(text('On.'))];
        const opening = {
          role: 'user',
          content: [{ type: 'text', text: '(The conversation begins.)' }],
        };
        expect(wire(...begun)).toEqual([opening, ...inOneGo(begun)]);
      }),
      { numRuns: 300 },
    );
  });

  it('X16: puts the results of tools first, in order, and joins what one side says in a row', () => {
    expect(
      wire(
        user(text('Oslo?')),
        user(text('And Rome?')),
        assistant(text('I look.'), use('1'), use('2')),
        tool(result('1', text('sun')), result('2')),
        user(text('Quick!')),
      ),
    ).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Oslo?' },
          { type: 'text', text: 'And Rome?' },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'I look.' },
          { type: 'tool_use', id: '1', name: 'weather', input: {} },
          { type: 'tool_use', id: '2', name: 'weather', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: '1', content: [{ type: 'text', text: 'sun' }] },
          { type: 'tool_result', tool_use_id: '2' },
          { type: 'text', text: 'Quick!' },
        ],
      },
    ]);
  });

  it('X16: lets a failed result say text only, and puts its pictures after all results', () => {
    const failed = { ...result('1', text('no'), picture), isError: true };
    const mute = { ...result('2', text(' ')), isError: true };
    expect(
      wire(user(text('Go.')), assistant(use('1'), use('2')), tool(failed, mute)),
    ).toMatchObject([
      {},
      {},
      {
        content: [
          { tool_use_id: '1', is_error: true, content: [{ type: 'text', text: 'no' }] },
          {
            tool_use_id: '2',
            is_error: true,
            content: [{ type: 'text', text: 'The tool failed.' }],
          },
          { type: 'image' },
        ],
      },
    ]);
  });

  it('X16: lets a user begin, and ends what is to be continued without white space', () => {
    expect(wire(assistant(text('Hello! ')))).toEqual([
      { role: 'user', content: [{ type: 'text', text: '(The conversation begins.)' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Hello!' }] },
    ]);
  });

  it('X16: leaves out who says nothing, and the last thoughts of a model, and notes its media', () => {
    const thought: AssistantBlock = { type: 'thinking', text: 'Hm', signature: 's' };
    expect(
      wire(
        user(text('Hi')),
        assistant(thought),
        user(text('\n')),
        assistant(text('Yes'), picture, thought),
      ),
    ).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'assistant', content: [text('Yes'), text('[Your image]')] },
    ]);
    expect(() => wire(assistant(text(' ')))).toThrow(invalid('empty'));
  });

  it('X16: does not lose a turn of the user who says nothing, now or later', () => {
    const asked = [user(text('Hi')), assistant(text('Yes')), user(text('\n'))];
    const empty = { role: 'user', content: [{ type: 'text', text: '(empty)' }] };
    const sent = [
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Yes' }] },
      empty,
    ];
    expect(wire(...asked)).toEqual(sent);
    expect(wire(...asked, assistant(text('What?')))).toMatchObject([...sent, {}]);
    expect(wire(user(text(' ')))).toEqual([empty]);
  });

  it('X8: sends thinking back with its signature, but none that Anthropic has not signed', () => {
    expect(
      wire(
        user(text('Hi')),
        assistant(
          { type: 'thinking', text: 'mine', signature: 'sig+/=' },
          { type: 'thinking', text: '', signature: 'data', redacted: true },
          { type: 'thinking', text: 'nobody signed' },
          { type: 'thinking', text: '', signature: '{"vendor":"OpenAI","kind":"item","value":{}}' },
          {
            type: 'thinking',
            text: '',
            signature: '{"vendor":"OpenAI","kind":"block","value":{"type":"server_tool_use"}}',
          },
          { type: 'thinking', text: '', signature: '{broken' },
          text('Hello'),
        ),
      ),
    ).toMatchObject([
      {},
      {
        content: [
          { type: 'thinking', thinking: 'mine', signature: 'sig+/=' },
          { type: 'redacted_thinking', data: 'data' },
          { type: 'text', text: 'Hello' },
        ],
      },
    ]);
  });

  it('names the speaker if there is more than one', () => {
    expect(
      wire({ ...user(text('Hi'), picture), name: 'Anna' }, { ...user(picture), name: 'Ben' }),
    ).toMatchObject([
      { content: [{ text: 'Anna: Hi' }, { type: 'image' }, { text: 'Ben:' }, { type: 'image' }] },
    ]);
  });

  it('X7: gives ids that the API does not take another form, in the use and in its result', () => {
    const ids = ['a.b', 'a:b', '', '__proto__', 'id_x'];
    const [, said, results] = wire(
      user(text('Go.')),
      assistant(...ids.map(use)),
      tool(...ids.map((id) => result(id))),
    ) as readonly { readonly content: readonly Readonly<Record<string, string>>[] }[];
    const written = said?.content.map(({ id }) => id);
    expect(written).toEqual(results?.content.map(({ tool_use_id: id }) => id));
    expect(new Set(written).size).toBe(ids.length);
    expect(written?.every((id) => /^[a-zA-Z0-9_-]+$/.test(id ?? ''))).toBe(true);
    expect(written?.[3]).toBe('__proto__');
  });

  it.each<[ContentBlock, unknown]>([
    [
      { type: 'image', source: { kind: 'base64', mediaType: 'IMAGE/PNG', data: 'AAAA' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
    ],
    [
      { type: 'image', source: { kind: 'base64', mediaType: 'image/jpg', data: 'AAAA' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'AAAA' } },
    ],
    [
      { type: 'image', source: { kind: 'url', url: 'data:image/jpg;base64,AAAA' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'AAAA' } },
    ],
    [
      { type: 'file', source: { kind: 'url', url: 'data:application/pdf;base64,AAAA' } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' } },
    ],
    [
      { type: 'file', source: { kind: 'url', url: 'data:,caf%C3%A9%2C%20noir' } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'café, noir' } },
    ],
    [picture, { type: 'image', source: { type: 'url', url: 'https://a.b/c.png' } }],
    [
      {
        type: 'file',
        name: 'paper',
        source: { kind: 'base64', mediaType: 'application/pdf', data: 'AAAA' },
      },
      {
        type: 'document',
        title: 'paper',
        source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' },
      },
    ],
    [
      { type: 'file', source: { kind: 'url', url: 'https://a.b/c.pdf' } },
      { type: 'document', source: { type: 'url', url: 'https://a.b/c.pdf' } },
    ],
    [
      {
        type: 'file',
        source: { kind: 'base64', mediaType: 'text/markdown; charset=utf-8', data: 'w6k=' },
      },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'é' } },
    ],
  ])('sends %j, also as the result of a tool', (block, expected) => {
    expect(wire(user(block))).toEqual([{ role: 'user', content: [expected] }]);
    expect(wire(user(text('Go.')), assistant(use('1')), tool(result('1', block)))).toMatchObject([
      {},
      {},
      { content: [{ content: [expected] }] },
    ]);
  });

  it.each<[ContentBlock, string]>([
    [{ type: 'audio', source: { kind: 'url', url: 'https://a.b/c.mp3' } }, 'audio'],
    [
      { type: 'image', source: { kind: 'base64', mediaType: 'image/tiff', data: 'AAAA' } },
      'image/tiff',
    ],
    [
      { type: 'image', source: { kind: 'base64', mediaType: 'image/heic', data: 'AAAA' } },
      "an image of the type 'image/heic', which cannot be sent. Use image/jpeg",
    ],
    [{ type: 'image', source: { kind: 'url', url: 'data:image/tiff;base64,AAAA' } }, 'image/tiff'],
    [{ type: 'image', source: { kind: 'url', url: 'file:///a.png' } }, 'an unsupported URL'],
    [{ type: 'file', source: { kind: 'url', url: 'data:image/png,%FF' } }, 'an unsupported URL'],
    [
      { type: 'file', source: { kind: 'base64', mediaType: 'application/zip', data: 'AAAA' } },
      'application/zip',
    ],
    [
      { type: 'file', source: { kind: 'url', mediaType: 'text/csv', url: 'https://a.b/c.csv' } },
      'text/csv',
    ],
  ])('refuses %j, and names the message', (block, named) => {
    expect(() => wire(user(block))).toThrow(invalid(`The message 'u' has `));
    expect(() => wire(user(block))).toThrow(invalid(named));
    expect(() => wire(user(block))).toThrow(
      expect.objectContaining({ userMessage: expect.stringContaining(named) }),
    );
  });
});
