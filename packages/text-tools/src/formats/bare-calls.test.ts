import { describe, expect, it } from '@jest/globals';
import { flatDialect } from '../dialects/index.js';
import { parseToolCalls } from './index.js';
import { outcome, read } from './reading.test-support.js';
import { tools } from './samples.test-support.js';

const [first] = tools;
const name = first?.name ?? '';
const json = `{"name": "${name}", "parameters": {"city": "Oslo"}}`;
const cuts = (reply: string): readonly (readonly string[])[] => [
  [reply],
  reply.split(''),
  reply.match(/[^]{1,7}/g) ?? [],
];
const ran = async (pieces: readonly string[]) => {
  const { calls = [], text } = outcome(
    (await read((model) => parseToolCalls(model), pieces)).chunks,
  );
  return { calls: calls.map(([called]) => called), text };
};

describe('P3: calls in JSON without marks, and in other tags', () => {
  it.each([
    json,
    `\n ${json}\n`,
    `[${json}]`,
    `{"type": "function", "name": "${name}", "parameters": {"city": "Oslo"}}`,
    `{"type": "function", "function": {"name": "${name}", "arguments": {"city": "Oslo"}}}`,
    `${json}<|eot_id|>`,
    `<think>I look.</think>\n${json}`,
    `\`${json}\``,
    ...['tool_calls', 'function_call', 'functioncall', 'tool_use'].flatMap((tag) => [
      `<${tag}>${json}</${tag}>`,
      `<${tag}>\n[${json}]\n</${tag}>`,
    ]),
    `<tool_call id="1">${json}</tool_call>`,
    `<function_call id="1">${json}</function_call>`,
    `<tool_use name="it">\n${json}\n</tool_use>`,
    `<tool_call type='function'>\n${json}\n</tool_call>`,
  ])('P3: runs %j', async (reply) => {
    for (const pieces of cuts(reply)) {
      expect(await ran(pieces)).toEqual({ calls: [name], text: undefined });
    }
  });

  it.each(['', ' ', '\n', ', ', ';\n'])(
    'P3: runs each of two, with %j between',
    async (between) => {
      for (const reply of [json + between + json, `[${json}]${between}[${json}]<|eot_id|>`]) {
        for (const pieces of cuts(reply)) {
          expect(await ran(pieces)).toEqual({ calls: [name, name], text: undefined });
        }
      }
    },
  );

  it.each([
    '{}',
    '\n{"temperature": -3}',
    '\n[{"title": "A"}]',
    '{</tool_call>',
    '; {"a": <|eot_id|>',
  ])('P3: runs a call, and not %j after it', async (after) => {
    for (const pieces of cuts(json + after)) {
      expect(await ran(pieces)).toEqual({ calls: [name], text: undefined });
    }
  });

  it.each(['{', '\n{"name": "now", "argum', ', {"a": 1', '{"a": <b>'])(
    'X2: runs nothing if %j follows, which is cut off',
    async (after) => {
      for (const pieces of cuts(json + after)) {
        const { chunks } = await read((model) => parseToolCalls(model), pieces);
        expect(outcome(chunks)).toMatchObject({ malformed: 'The tool call is not complete.' });
        expect(outcome(chunks).calls).toBeUndefined();
      }
    },
  );

  it('P3: a dialect reads JSON itself, with its thought', async () => {
    const reply = `{"name": "${name}", "arguments": {"city": "Oslo"}, "thought": "I look."}`;
    for (const pieces of cuts(reply)) {
      const { chunks } = await read(
        (model) => parseToolCalls(model, { dialect: flatDialect() }),
        pieces,
      );
      expect(outcome(chunks)).toEqual({ thinking: 'I look.', calls: [[name, { city: 'Oslo' }]] });
    }
  });

  it.each([
    `{"name": "${name}", "age": 5}`,
    `{"name": "${name}"}`,
    '{"name": "Ada", "parameters": {"city": "Oslo"}}',
    '{"title": "A", "name": "b"}',
    `${json}\nThat is how to call it.`,
    `It says: ${json}`,
    `Write this:\n${json}\nand wait.`,
    `[1] A source\n[2] Another`,
    '[{"name": "Ada"}]',
    '{',
    '[',
    `<function_call is a tag`,
    `<tool_use>`,
    `It says <function_call>${json}</function_call> there.`,
  ])('P9: does not run %j', async (reply) => {
    for (const pieces of cuts(reply)) expect(await ran(pieces)).toEqual({ calls: [], text: reply });
  });
});
