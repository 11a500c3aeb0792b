import { describe, expect, it } from '@jest/globals';
import { createMessageBuilder, type MessageBuilder } from './message-builder.js';
import { toolCallsOf } from '../values/message.js';
import type { ModelChunk } from '../models/model.js';
import { finish, text, thinking, toolCall } from '../testing/index.js';

const draftOf = (chunks: readonly ModelChunk[], taken: readonly string[] = []): MessageBuilder => {
  const draft = createMessageBuilder({
    messageId: 'm',
    name: 'agent',
    iteration: 3,
    isTaken: (id) => taken.includes(id),
  });
  chunks.forEach((chunk) => draft.add(chunk));
  return draft;
};

const toolsIn = (...chunks: readonly ModelChunk[]) => toolCallsOf(draftOf(chunks).message());

describe('a draft', () => {
  it('R4: folds deltas of text and thinking into blocks, in order', () => {
    const chunks = [thinking('hm'), thinking(', so'), text('Hel'), text('lo'), text('')];
    expect(draftOf(chunks).message().content).toEqual([
      { type: 'thinking', text: 'hm, so' },
      { type: 'text', text: 'Hello' },
    ]);
  });

  it('R4: a signature closes its thinking block and is kept', () => {
    const signed: ModelChunk = { type: 'thinking', text: '', signature: 's1' };
    const redacted: ModelChunk = { type: 'thinking', text: '', signature: 's2', redacted: true };
    expect(draftOf([thinking('a'), signed, thinking('b'), redacted]).message().content).toEqual([
      { type: 'thinking', text: 'a', signature: 's1' },
      { type: 'thinking', text: 'b', signature: 's2', redacted: true },
    ]);
  });

  it('X6: arguments that are nested too deeply are no arguments, and nothing breaks', () => {
    const deep: unknown = JSON.parse(`${'[1,'.repeat(50_000)}1${']'.repeat(50_000)}`);
    const tools = toolsIn({ type: 'toolCall', name: 'f', input: { deep } });
    expect(tools).toMatchObject([{ input: {}, invalidInput: expect.any(String) as unknown }]);
  });

  it('R4: joins the arguments of a tool use by index', () => {
    const tools = toolsIn(
      { type: 'toolCall', index: 0, id: 'a', name: 'f', json: '{"x"' },
      { type: 'toolCall', index: 1, id: 'b', name: 'g', json: '{"y":' },
      { type: 'toolCall', index: 0, json: ':1}' },
      { type: 'toolCall', index: 1, json: '2}' },
    );
    expect(tools).toEqual([
      { type: 'tool_call', id: 'a', name: 'f', input: { x: 1 } },
      { type: 'tool_call', id: 'b', name: 'g', input: { y: 2 } },
    ]);
  });

  it('R4: joins the arguments of a tool use by id, where all have the same index', () => {
    const tools = toolsIn(
      { type: 'toolCall', index: 0, id: 'a', name: 'f', json: '{' },
      { type: 'toolCall', index: 0, id: 'a', json: '}' },
      { type: 'toolCall', index: 0, id: 'b', name: 'f', json: '{}' },
    );
    expect(tools.map(({ id, input }) => [id, input])).toEqual([
      ['a', {}],
      ['b', {}],
    ]);
  });

  it('R4: tells tool uses without index and id apart by their names', () => {
    const tools = toolsIn(
      { type: 'toolCall', name: 'f', json: '{"x":' },
      { type: 'toolCall', json: '1}' },
      { type: 'toolCall', name: 'f', json: '{"x":2}' },
    );
    expect(tools.map(({ id, input }) => [id, input])).toEqual([
      ['call_3_0', { x: 1 }],
      ['call_3_1', { x: 2 }],
    ]);
  });

  it('R4: whole tool uses of one name stay two', () => {
    expect(toolsIn(toolCall('f', { x: 1 }), toolCall('f', { x: 1 }))).toHaveLength(2);
  });

  it('R4: an id that the conversation knows, or that is given twice, becomes unique', () => {
    const draft = draftOf(
      [
        { type: 'toolCall', index: 0, id: 'a', name: 'f', json: '{}' },
        { type: 'toolCall', index: 1, id: 'a', name: 'f', json: '{}' },
        { type: 'toolCall', index: 2, id: '__proto__', name: 'f', json: '{}' },
      ],
      ['a'],
    );
    expect(toolCallsOf(draft.message()).map(({ id }) => id)).toEqual(['a_2', 'a_3', '__proto__']);
  });

  it('R4: thousands of tool uses of one id stay apart, in little time', () => {
    const same = Array.from({ length: 4000 }, () => toolCall('f', {}, 'a'));
    const ids = toolsIn(...same).map(({ id }) => id);
    expect(new Set(ids).size).toBe(4000);
  });

  it('R4: arguments that are no JSON object are kept aside, and none are an empty object', () => {
    const tools = toolsIn(
      { type: 'toolCall', index: 0, name: 'f', json: '{"x":' },
      { type: 'toolCall', index: 1, name: 'f', json: '[1]' },
      { type: 'toolCall', index: 2, name: 'f' },
      { type: 'toolCall', index: 3, name: 'f', input: 'text' },
    );
    expect(tools.map(({ input, invalidInput }) => [input, invalidInput])).toEqual([
      [{}, '{"x":'],
      [{}, '[1]'],
      [{}, undefined],
      [{}, '"text"'],
    ]);
  });

  it('R4: a later count of usage replaces an earlier one, field by field', () => {
    const draft = draftOf([
      { type: 'usage', usage: { inputTokens: 5, outputTokens: 1 } },
      { type: 'usage', usage: { outputTokens: 7 } },
    ]);
    expect(draft.usage).toMatchObject({ inputTokens: 5, outputTokens: 7 });
  });

  it('I4: a restart voids what was there, begins a new message, and keeps what it cost', () => {
    const draft = draftOf([
      text('old'),
      { type: 'usage', usage: { outputTokens: 2 } },
      { type: 'restart', why: 'the connection broke' },
      text('new'),
      { type: 'usage', usage: { outputTokens: 3 } },
    ]);
    expect(draft.message()).toMatchObject({ id: 'm#2', content: [{ text: 'new' }] });
    expect(draft.usage.outputTokens).toBe(5);
  });

  it('X5: content behind the finish is ignored, usage is not', () => {
    const draft = draftOf([
      text('a'),
      finish(),
      text('b'),
      { type: 'usage', usage: { inputTokens: 1 } },
    ]);
    expect(draft.message().content).toEqual([{ type: 'text', text: 'a' }]);
    expect(draft.usage.inputTokens).toBe(1);
  });

  it('I9: what is shown is what is kept', () => {
    const draft = draftOf([]);
    const shown = [text('a'), text(''), thinking('h'), text('b')].map((chunk) => draft.add(chunk));
    expect(shown.map((delta) => delta?.delta)).toEqual(['a', undefined, 'h', 'b']);
  });
});
