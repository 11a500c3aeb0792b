import { describe, expect, it } from '@jest/globals';
import { createAgent, type Model, type ModelChunk, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { finish, scriptedModel, text, thinking } from 'millrace/testing';
import {
  actionDialect,
  flatDialect,
  linesDialect,
  parseToolCalls,
  splitThinking,
  stepsDialect,
  textTools,
} from './index.js';

const damage: ModelChunk = { type: 'text', text: '', isDamaged: true };

/** Each reader of text, and a call as it reads it. */
const readers: Readonly<Record<string, readonly [wrap: (model: Model) => Model, call: string]>> = {
  action: [
    (model) => textTools(model, actionDialect()),
    'Action: {"tool": "pay", "inputs": {"a": 1}}',
  ],
  flat: [(model) => textTools(model, flatDialect()), '{"tool": "pay", "arguments": {"a": 1}}'],
  lines: [(model) => textTools(model, linesDialect()), 'Action: pay\nAction Input: {"a": 1}'],
  steps: [(model) => textTools(model, stepsDialect()), '[{"name": "pay", "arguments": {"a": 1}}]'],
  'the formats of models': [
    parseToolCalls,
    '<tool_call>{"name": "pay", "arguments": {"a": 1}}</tool_call>',
  ],
  'formats beside a dialect': [
    (model) => parseToolCalls(model, { dialect: actionDialect() }),
    'Action: {"tool": "pay", "inputs": {"a": 1}}',
  ],
  'a dialect after thoughts': [
    (model) => textTools(splitThinking(model), actionDialect()),
    '<think>Hm.</think>\nAction: {"tool": "pay", "inputs": {"a": 1}}',
  ],
};

const play = async (wrap: (model: Model) => Model, chunks: readonly ModelChunk[]) => {
  const runs: unknown[] = [];
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: jsonSchema({ type: 'object', additionalProperties: true }),
    run: (input) => {
      runs.push(input);
      return 'ok';
    },
  });
  const model = wrap(scriptedModel([...chunks, finish()], [text('It is done.')]));
  const ended = await createAgent({ model, tools: [pay] })
    .call('?')
    .then(
      () => undefined,
      (error: unknown) => error,
    );
  return { runs, error: ended };
};

describe.each(Object.entries(readers))('X47: damaged text, read as %s', (_, [wrap, call]) => {
  const half = Math.ceil(call.length / 2);
  it.each([
    ['before the call', [damage, text(call)]],
    ['within the call', [text(call.slice(0, half)), damage, text(call.slice(half))]],
    ['after the call', [text(call), damage]],
    ['before a thought', [damage, thinking('Hm.'), text(call)]],
    [
      'before the end contradicted the stream',
      [damage, { type: 'restart', why: 'Other.', isSameRequest: true } as const, text(call)],
    ],
  ])('X47: %s, no tool runs, and the request can be tried again', async (_place, chunks) => {
    const { runs, error } = await play(wrap, chunks);
    expect(runs).toEqual([]);
    expect(error).toMatchObject({ code: 'connection', retryable: true });
  });

  it('X47: of an attempt that was discarded, the call of the next one runs', async () => {
    const chunks = [damage, { type: 'restart', why: 'Retried.' } as const, text(call)];
    expect((await play(wrap, chunks)).runs).toEqual([{ a: 1 }]);
  });

  it('X47: U+FFFD without damage is written by the model', async () => {
    const { runs } = await play(wrap, [text(call.replace('"a"', '"\uFFFD"'))]);
    expect(runs).toEqual([{ '\uFFFD': 1 }]);
  });
});

it('X47: damaged text without a call is an answer', async () => {
  const model = scriptedModel([damage, text('It is n\uFFFDce.'), finish()]);
  const reply = await createAgent({ model: parseToolCalls(model) }).call('?');
  expect(reply.content).toEqual([{ type: 'text', text: 'It is n\uFFFDce.' }]);
});
