import { describe, expect, it } from '@jest/globals';
import { isMillraceError, toolOutput, toolResults } from 'millrace';
import fc from 'fast-check';
import { placeOfAgUi } from './ag-ui/input-of-ag-ui.js';
import { placeOfUiMessages } from './ai-sdk/input-of-ui-messages.js';
import { inputOfAgUi, inputOfUiMessages } from './index.js';

const user = { id: '1', role: 'user' };
const chat = (body: object) => ({
  id: 'chat-1',
  messages: [
    {
      ...user,
      parts: [
        { type: 'text', text: 'Hello' },
        { type: 'text', text: '!' },
      ],
    },
  ],
  trigger: 'submit-message',
  ...body,
});
const agUi = (body: object) => ({
  threadId: 'thread-1',
  runId: 'run-1',
  messages: [{ ...user, content: 'Hello!' }],
  tools: [],
  context: [],
  ...body,
});

describe('the settings of a request', () => {
  it('is the text of its last message', () => {
    expect(inputOfUiMessages(chat({}))).toEqual({ input: 'Hello!', chatId: 'chat-1' });
    const asked = { input: 'Hello!', threadId: 'thread-1', runId: 'run-1' };
    expect(inputOfAgUi(agUi({}))).toEqual(asked);
    const content = [{ type: 'text', text: 'Hello!' }];
    expect(inputOfAgUi(agUi({ messages: [{ ...user, content }], resume: [] }))).toEqual(asked);
  });

  it.each([
    ['image', 'image/png'],
    ['image', 'image/heic'],
    ['audio', 'audio/wav'],
    ['file', 'application/pdf'],
  ] as const)('is the text and the files of its last message: %s', (type, mediaType) => {
    const text = { type: 'text', text: 'See:' };
    const url = `data:${mediaType};base64,AAAA`;
    const source = { kind: 'base64', mediaType, data: 'AAAA' };
    const file = { type: 'file', url, mediaType, ...(type === 'file' && { filename: 'a.pdf' }) };
    const named = { type, source, ...(type === 'file' && { name: 'a.pdf' }) };
    const { input } = inputOfUiMessages(chat({ messages: [{ ...user, parts: [text, file] }] }));
    expect(input).toEqual([text, named]);
    const part = {
      type: type === 'file' ? 'document' : type,
      source: { type: 'data', value: 'AAAA', mimeType: mediaType },
    };
    const run = inputOfAgUi(agUi({ messages: [{ ...user, content: [text, part] }] }));
    expect(run.input).toEqual([text, { type, source }]);
  });

  it('S12: says after which message a request continues, and what it replaces', () => {
    const answer = { id: 'call-1', role: 'assistant', parts: [] };
    const question = { ...user, parts: [{ type: 'text', text: 'Again?' }] };
    const again = { trigger: 'regenerate-message' };
    const later = { messages: [{ ...question, id: '0' }, answer, question] };
    const ids = (body: unknown) => {
      const { shown = [], replaced, questionId } = placeOfUiMessages(body);
      return [shown.map(({ id }) => id), questionId, replaced];
    };
    expect(ids(chat(later))).toEqual([['0', 'call-1'], '1', undefined]);
    expect(ids(chat({ ...later, ...again }))).toEqual([['0', 'call-1'], '1', ['1']]);
    expect(ids(chat({ ...later, messageId: '1' }))).toEqual([['0', 'call-1'], '1', ['1', '1']]);
    expect(ids(chat({ ...again, messageId: 'call-1' }))).toEqual([[], '1', ['call-1', '1']]);
    expect(ids(chat({ messages: [question, answer] }))).toEqual([['call-1'], undefined, undefined]);
    const run = (more: object) => {
      const { shown = [], isWhole } = placeOfAgUi(agUi(more));
      return [shown.map(({ id }) => id), isWhole];
    };
    expect(run({ forwardedProps: { after: 'call-1' } })).toEqual([['call-1'], undefined]);
    expect(run({ forwardedProps: { after: '' } })).toEqual([[], true]);
    const said = [
      { id: '0', role: 'user', content: 'Hi' },
      { id: 'c/1', role: 'assistant' },
    ];
    expect(run({ messages: [...said, user] })).toEqual([['0', 'c/1'], true]);
    const bad = [{ id: 1, role: 'user', content: 'Hi' }, user];
    expect(() => placeOfAgUi(agUi({ messages: bad }))).toThrow('messages[].id');
    const long = { ...question, id: 'x'.repeat(513) };
    expect(() => placeOfUiMessages(chat({ messages: [long, question] }))).toThrow('messages[].id');
    expect(() => placeOfAgUi(agUi({ forwardedProps: { after: '../x' } }))).toThrow('malformed');
  });

  const use = { toolCallId: 'c/1/w', localId: 'w', toolName: 'where' };
  const suspended = { type: 'data-suspended', id: 'c/1/w', data: { ...use, request: null } };
  const answered = { type: 'tool-where', toolCallId: 'c/1/w', state: 'output-available' };
  const assistant = (...them: readonly unknown[]) => ({
    messages: [{ id: 'c', role: 'assistant', parts: them }],
  });
  const asking = { id: 'c/1', role: 'assistant', toolCalls: [{ id: 'c/1/w' }, { id: 'c/1/l' }] };
  const result = { id: 'r', role: 'tool', toolCallId: 'c/1/w', content: 'Oslo' };

  it('T13: is the results of the suspended tools of the last step', () => {
    const earlier = [
      { ...suspended, data: { ...use, toolCallId: 'c/1/v' } },
      { type: 'step-start' },
    ];
    const own = { type: 'tool-look', toolCallId: 'c/1/l', state: 'output-available', output: 1 };
    const body = assistant(
      { ...answered, toolCallId: 'c/1/v' },
      ...earlier,
      { ...answered, output: { city: 'Oslo' } },
      own,
      suspended,
    );
    expect(inputOfUiMessages(chat(body))).toEqual({
      input: toolResults({ w: { city: 'Oslo' } }, { from: 'client' }),
      ...{ chatId: 'chat-1', messageId: 'c', clientResults: ['w'] },
    });
    const dynamic = { ...answered, type: 'dynamic-tool', state: 'output-error', errorText: 'No.' };
    expect(inputOfUiMessages(chat(assistant(dynamic, suspended))).input).toEqual(
      toolResults({ w: toolOutput({ content: 'No.', isError: true }) }, { from: 'client' }),
    );
  });

  it('T13: is the results that the client has written at the end', () => {
    const own = { ...result, id: 'c/1/l/result', toolCallId: 'c/1/l' };
    expect(inputOfAgUi(agUi({ messages: [asking, own, result] }))).toEqual({
      input: toolResults({ w: 'Oslo' }, { from: 'client' }),
      ...{ threadId: 'thread-1', runId: 'run-1', clientResults: ['w'] },
    });
    const error = { ...result, content: [{ type: 'text', text: 'Half.' }], error: 'No.' };
    expect(inputOfAgUi(agUi({ messages: [asking, error] })).input).toEqual(
      toolResults({ w: toolOutput({ content: 'Half.\nNo.', isError: true }) }, { from: 'client' }),
    );
  });

  const parts = (...them: readonly unknown[]) => ({ messages: [{ ...user, parts: them }] });
  const prototype = JSON.parse('{"__proto__":{"role":"user","parts":[]},"content":"x"}') as unknown;
  const hostile: readonly [string, object][] = [
    ['no messages', { messages: undefined }],
    ['messages that are no list', { messages: { 0: user, length: 1 } }],
    ['an empty list', { messages: [] }],
    ['a message that is none', { messages: [null] }],
    ['a list of lists', { messages: [[]] }],
    ['an assistant that spoke last', { messages: [{ ...user, role: 'assistant', content: 'x' }] }],
    ['a tool that waits', assistant({ ...answered, state: 'input-available' }, suspended)],
    ['progress', assistant({ ...answered, preliminary: true }, suspended)],
    ['a tool that is not suspended', assistant(answered)],
    ['a suspension without a tool', assistant(suspended, { ...suspended, data: null })],
    ['ids that are none', assistant({ ...suspended, data: { toolCallId: 1, localId: {} } })],
    [
      'a tool id of ten kilobytes',
      assistant({ ...suspended, data: { ...use, localId: 'x'.repeat(10_000) } }, answered),
    ],
    [
      'a message without an id',
      { messages: [{ role: 'assistant', parts: [answered, suspended] }] },
    ],
    ['a result of nothing', { messages: [result] }],
    ['a result of a tool of the server', { messages: [asking, { ...result, id: 'c/1/w/result' }] }],
    ['a result under another id', { messages: [{ ...asking, id: 'd' }, result] }],
    [
      'a result of a message without an id',
      { messages: [{ ...asking, id: { toString: 1 } }, result] },
    ],
    [
      'a result that is a picture',
      { messages: [asking, { ...result, content: [{ type: 'image' }] }] },
    ],
    ['keys that reach a prototype', { messages: [prototype] }],
    ['neither parts nor content', { messages: [user] }],
    ['parts and content that are no lists', { messages: [{ ...user, parts: 1, content: 1 }] }],
    ['a file elsewhere', parts({ type: 'file', url: 'http://169.254.169.254/', mediaType: 'a/b' })],
    [
      'a file that is no base64',
      parts({ type: 'file', url: 'data:a/b;base64,%00', mediaType: 'a/b' }),
    ],
    ['a file without a type', parts({ type: 'file', url: 'data:;base64,AAAA', mediaType: 'a/b' })],
    [
      'a picture elsewhere',
      parts({ type: 'image', source: { type: 'url', value: 'https://a.example' } }),
    ],
    ['a text that is none', parts({ type: 'text', text: 1 })],
    ['nothing', parts()],
    ['a blank', { messages: [{ ...user, content: ' \n', parts: [{ type: 'text', text: ' ' }] }] }],
    ['no id', { id: undefined, runId: undefined }],
    ['an id that is a path', { id: '../../x', threadId: '../../x' }],
    ['an id of dots', { id: '..', threadId: '..' }],
    ['an id with NUL', { id: 'a\0', threadId: 'a\0' }],
    ['an id of ten kilobytes', { id: 'x'.repeat(10_000), runId: 'x'.repeat(10_000) }],
    ['an id that is none', { id: { toString: () => 'a' }, runId: ['a'] }],
  ];

  it.each(hostile)('I10: is nothing that can be read: %s', (_, body) => {
    const refusal = expect.objectContaining({
      code: 'invalidRequest',
      userMessage: expect.stringMatching(/^The request is malformed: [^]/),
    });
    expect(thrownBy(() => inputOfUiMessages(chat(body)))).toEqual(refusal);
    expect(thrownBy(() => inputOfAgUi(agUi(body)))).toEqual(refusal);
  });

  it('I10: is in the body itself, and not in what it inherits', () => {
    expect(() => inputOfUiMessages(Object.create(chat({})))).toThrow(/'messages' must be a list/);
    expect(() => inputOfAgUi(Object.create(agUi({})))).toThrow(/'messages' must be a list/);
    expect(() => inputOfAgUi([agUi({})])).toThrow(/not a JSON object/);
  });

  it('I10: is not the answer to an interrupt', () => {
    const resume = [{ interruptId: 'i', status: 'resolved' }];
    expect(() => inputOfAgUi(agUi({ resume }))).toThrow(/'resume' is not supported/);
  });

  it('X15: any input is read or refused, and changes no prototype', () => {
    const body = fc.oneof(
      fc.anything({ withNullPrototype: true }),
      fc.json().map((json): unknown => JSON.parse(json)),
      fc.record({ id: fc.anything(), messages: fc.array(fc.anything()) }),
      fc
        .record({ data: fc.anything(), state: fc.anything(), errorText: fc.anything() })
        .map(({ data, ...tool }) =>
          assistant(
            { ...answered, ...tool, state: 'output-error' },
            { ...suspended, data },
            suspended,
          ),
        )
        .map(chat),
      fc
        .record({ id: fc.anything(), content: fc.anything(), error: fc.anything() })
        .map(({ id, ...it }) =>
          agUi({
            messages: [
              { ...asking, id },
              { ...result, ...it },
            ],
          }),
        ),
      fc.constant(
        JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{}}}') as unknown,
      ),
    );
    fc.assert(
      fc.property(body, (it) => {
        for (const read of [inputOfUiMessages, inputOfAgUi]) {
          const thrown = thrownBy(() => read(it));
          expect(thrown === undefined || isMillraceError(thrown)).toBe(true);
        }
        expect('polluted' in {}).toBe(false);
      }),
    );
  });

  it('reads an endless data URL in linear time', () => {
    const url = `data:a/b;${';base64'.repeat(200_000)}`;
    const messages = [{ role: 'user', parts: [{ type: 'file', url }] }];
    const began = process.cpuUsage().user / 1_000;
    expect(() => inputOfUiMessages({ id: 'a', messages })).toThrow('base64 data');
    expect(process.cpuUsage().user / 1_000 - began).toBeLessThan(2_000);
  });
});

const thrownBy = (act: () => unknown): unknown => {
  try {
    act();
    return undefined;
  } catch (thrown) {
    return thrown;
  }
};
