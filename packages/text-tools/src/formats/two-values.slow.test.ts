import { describe, expect, it } from '@jest/globals';
import { createAgent, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { finish, scriptedModel, text } from 'millrace/testing';
import { from, lastValueFrom, toArray } from 'rxjs';
import { parseToolCalls } from './index.js';

/** The tool calls that ran, and the errors of the others, if a model writes this, whole or in single characters. */
const runsOf = async (written: string, inPieces: boolean) => {
  const ran: string[] = [];
  const tools = ['alpha', 'beta'].map((name) =>
    tool({
      name,
      description: name,
      input: jsonSchema({ type: 'object', properties: { x: { type: 'number' } } } as const),
      run: ({ x }) => {
        ran.push(`${name} ${x}`);
        return 'ok';
      },
    }),
  );
  const pieces = inPieces ? [...written] : [written];
  const model = scriptedModel(
    from([...pieces.map((piece) => text(piece)), finish()]),
    ...Array.from({ length: 3 }, () => [text('Done.')]),
  );
  const agent = createAgent({ model: parseToolCalls(model), tools });
  const events = await lastValueFrom(agent.stream$('?').pipe(toArray()));
  const errors = events.flatMap((event) =>
    event.type === 'postActing' && event.result.isError ? ['refused'] : [],
  );
  return [...ran, ...errors];
};

const [one, two] = ['{"x": 1}', '{"x": 2}'];
const [alpha, beta] = [
  `{"name": "alpha", "arguments": ${one}}`,
  `{"name": "beta", "arguments": ${two}}`,
];
const separators = [', ', ',', ' ', '\n', ';\n', '; ', ''];

describe('X11: two values if one is wanted', () => {
  const refused: Readonly<Record<string, (between: string) => string>> = {
    'after a name': (between) => `[TOOL_CALLS]alpha[ARGS]${one}${between}${two}`,
    'in a message': (between) =>
      `<|channel|>commentary to=functions.alpha <|constrain|>json<|message|>${one}${between}${two}<|call|>`,
    'in a section': (between) =>
      `<|tool_call_begin|>functions.alpha:0<|tool_call_argument_begin|>${one}${between}${two}<|tool_call_end|>`,
    'in a tag': (between) => `<function=alpha>${one}${between}${two}</function>`,
    'for a key': (between) =>
      `<tool_call>{"name": "alpha", "arguments": ${one}${between}${two}}</tool_call>`,
    'for a key, in a string': (between) =>
      `<tool_call>{"name": "alpha", "arguments": ${JSON.stringify(one + between + two)}}</tool_call>`,
    'as a list': (between) =>
      `<tool_call>{"name": "alpha", "arguments": [${one}${between}${two}]}</tool_call>`,
    'for a key that comes twice': (between) =>
      `<tool_call>{"name": "alpha", "arguments": ${one}, "arguments":${between.replace(/[,;]/g, ' ')}${two}}</tool_call>`,
    'for two keys of the same meaning': (between) =>
      `<tool_call>{"name": "alpha", "arguments": ${one}, "parameters":${between.replace(/[,;]/g, ' ')}${two}}</tool_call>`,
    'within and beside a function': (between) =>
      `<tool_call>{"arguments": ${one}, "function": {"name": "alpha", "arguments":${between.replace(/[,;]/g, ' ')}${two}}}</tool_call>`,
    'in a list of calls': (between) =>
      `[TOOL_CALLS][{"name": "alpha", "arguments": ${one}, "arguments":${between.replace(/[,;]/g, ' ')}${two}}]`,
    'with a list after it': (between) => `[TOOL_CALLS]alpha[ARGS]${one}${between}[${two}]`,
  };
  it.each(Object.entries(refused))('are refused: %s', async (_name, written) => {
    for (const between of separators) {
      for (const inPieces of [false, true]) {
        const found = await runsOf(written(between), inPieces);
        expect([between, inPieces, found]).toEqual([between, inPieces, ['refused']]);
      }
    }
  });

  const namesRefused: Readonly<Record<string, string>> = {
    'a name twice': `<tool_call>{"name": "alpha", "name": "beta", "arguments": ${one}}</tool_call>`,
    'two keys for a name': `<tool_call>{"name": "alpha", "tool": "beta", "arguments": ${one}}</tool_call>`,
    'a name beside a function': `<tool_call>{"name": "alpha", "function": {"name": "beta", "arguments": ${one}}}</tool_call>`,
    'a reply that is only JSON': `{"name": "alpha", "arguments": ${one}, "name": "beta"}`,
  };
  it.each(Object.entries(namesRefused))('are refused: %s', async (_name, written) => {
    for (const inPieces of [false, true]) {
      expect((await runsOf(written, inPieces)).filter((it) => it !== 'refused')).toEqual([]);
    }
  });

  it.each([
    `{"name": "alpha", "arguments": ${one}, "arguments": ${one}}`,
    `{"name": "alpha", "arguments": ${one}, "parameters": {"x":1}}`,
    `{"name": "alpha", "arguments": ${one}, "parameters": null, "input": ""}`,
    `{"name": "alpha", "arguments": "{\\"x\\":1}", "parameters": ${one}}`,
    `{"name": "alpha", "function": {"name": "functions.alpha", "arguments": ${one}}}`,
  ])('are one if they are the same: %s', async (call) => {
    for (const inPieces of [false, true]) {
      expect(await runsOf(`<tool_call>${call}</tool_call>`, inPieces)).toEqual(['alpha 1']);
    }
  });

  const taken: Readonly<Record<string, (between: string) => string>> = {
    'calls in one mark': (between) => `<tool_call>${alpha}${between}${beta}</tool_call>`,
    'calls after one token': (between) => `<|python_tag|>${alpha}${between}${beta}<|eom_id|>`,
    'a list of calls': (between) => `[TOOL_CALLS][${alpha}${between}${beta}]`,
  };
  it.each(Object.entries(taken))('are both taken if each is a call: %s', async (_name, written) => {
    for (const between of separators) {
      for (const inPieces of [false, true]) {
        const found = await runsOf(written(between), inPieces);
        expect([between, inPieces, found]).toEqual([between, inPieces, ['alpha 1', 'beta 2']]);
      }
    }
  });

  it.each([
    [
      'another mark',
      `[TOOL_CALLS]alpha[ARGS]${one}[TOOL_CALLS]beta[ARGS]${two}`,
      ['alpha 1', 'beta 2'],
    ],
    ['text', `[TOOL_CALLS]alpha[ARGS]${one}, as you asked.`, ['alpha 1']],
    ['nothing', `[TOOL_CALLS]alpha[ARGS]${one}`, ['alpha 1']],
    ['space', `[TOOL_CALLS]alpha[ARGS]${one} \n `, ['alpha 1']],
    ['an object that is cut off', `[TOOL_CALLS]alpha[ARGS]${one}, {"x": `, ['refused']],
  ])('are not seen if they do not exist: %s', async (_name, written, expected) => {
    for (const inPieces of [false, true]) expect(await runsOf(written, inPieces)).toEqual(expected);
  });
});
