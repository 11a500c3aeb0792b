import { describe, expect, it, jest } from '@jest/globals';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';
import { createAgent, tool } from '../index.js';
import { jsonSchema } from '../schema/index.js';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from '../testing/index.js';

/** What came of arguments that a model wrote as this text. */
const use = async (json: string, name = 'lookup') => {
  const seen: unknown[] = [];
  const lookup = tool({
    name: 'lookup',
    description: 'Looks a city up.',
    input: jsonSchema({
      type: 'object',
      properties: {
        city: { type: 'string' },
        more: { type: 'object', properties: { name: { type: 'string' } } },
        any: {},
        list: { type: 'array', items: { type: 'object', properties: { n: { type: 'number' } } } },
      },
      required: ['city'],
    }),
    run: (input) => {
      seen.push(input);
      return 'ran';
    },
  });
  const answers: ScriptedAnswer[] = [[{ type: 'toolCall', name, json }], [text('done')]];
  const model = scriptedModel(...answers);
  const reply = await createAgent({ model, tools: [lookup] }).call('?');
  return { seen, output: reply.toolCalls[0]?.output ?? '', reply };
};

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

/** Hostile inputs: the summary is in docs/tools.md. */
describe('hostile arguments', () => {
  it.each([
    ['__proto__ at the top', '{"city":"a","__proto__":{"polluted":1}}', '{"city":"a"}'],
    [
      '__proto__ below',
      '{"city":"a","more":{"name":"b","__proto__":{"polluted":1}}}',
      '{"city":"a","more":{"name":"b"}}',
    ],
    [
      '__proto__ in a list',
      '{"city":"a","list":[{"n":1,"__proto__":{"polluted":1}}]}',
      '{"city":"a","list":[{"n":1}]}',
    ],
    [
      '__proto__ where anything goes',
      '{"city":"a","any":[{"__proto__":{"polluted":1},"b":1}]}',
      '{"city":"a","any":[{"b":1}]}',
    ],
    [
      '__proto__ in escapes',
      String.raw`{"city":"a","\u005f_proto__":{"polluted":1}}`,
      '{"city":"a"}',
    ],
    [
      '__proto__ in arguments that are repaired',
      `{'city':'a','__proto__':{'polluted':1}}`,
      '{"city":"a"}',
    ],
    [
      'constructor.prototype',
      '{"city":"a","constructor":{"prototype":{"polluted":1}}}',
      '{"city":"a"}',
    ],
    [
      'constructor where anything goes',
      '{"city":"a","any":{"constructor":{"prototype":{"polluted":1}}}}',
      '{"city":"a","any":{}}',
    ],
    ['toString and its like', '{"city":"a","toString":1,"hasOwnProperty":2}', '{"city":"a"}'],
    [
      'keys that are not asked for',
      `{"city":"a",${Array.from({ length: 10_000 }, (_, n) => `"k${n}":${n}`).join()}}`,
      '{"city":"a"}',
    ],
  ])('T17: %s: the tool runs without it', async (_, json, input) => {
    const { seen, output } = await use(json);
    expect(output).toBe('ran');
    expect(JSON.stringify(seen[0])).toBe(input);
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
    expect(Object.getPrototypeOf(seen[0])).toBe(Object.prototype);
  });

  it('T17, X15: constructor.prototype is left out where any key is allowed, and nothing else', async () => {
    const run = jest.fn((given: unknown) => JSON.stringify(given));
    const input = { type: 'object', properties: { any: {} }, additionalProperties: true } as const;
    const store = tool({ name: 'store', description: 'Stores.', input: jsonSchema(input), run });
    const json =
      '{"constructor":{"prototype":{"polluted":1}},"any":{"constructor":{"prototype":1}},"b":{"constructor":"Ada"},"prototype":1}';
    const model = scriptedModel([{ type: 'toolCall', name: 'store', json }], [text('done')]);
    const reply = await createAgent({ model, tools: [store] }).call('?');
    expect(reply.toolCalls[0]?.output).toBe('{"any":{},"b":{"constructor":"Ada"},"prototype":1}');
  });

  it.each([
    ['zod', 'Update zod to 4.2'],
    ['valibot', 'toStandardJsonSchema'],
    ['other', 'Wrap it so that it can'],
  ])(
    'X13: a schema of %s that cannot export JSON Schema is refused with the fix',
    (vendor, fix) => {
      const validate = (value: unknown) => ({ value });
      const input = { '~standard': { version: 1, vendor, validate } } as never;
      const make = () => tool({ name: 'f', description: 'F.', input, run: () => 'x' });
      expect(make).toThrow(fix);
    },
  );

  it.each(['天気', 'weather today', 'ü'.repeat(256), '👩‍👩‍👧', '__proto__', 'a/b:c'])(
    'X14: a tool may be called %s',
    async (name) => {
      const named = tool({ name, description: 'Named.', run: () => 'ran' });
      const model = scriptedModel([toolCall(name)], [text('done')]);
      const reply = await createAgent({ model, tools: [named] }).call('?');
      expect(reply.toolCalls).toMatchObject([{ name, output: 'ran' }]);
    },
  );

  it.each(['', ' a', 'a\nb', 'a\u0000', 'a\u202Eb', 'a'.repeat(257), '\uD800'])(
    'X14: a tool may not be called %j',
    (name) => {
      expect(() => tool({ name, description: 'Named.', run: () => 'ran' })).toThrow(/1 to 256/);
    },
  );

  it.each([
    ['zod', z.looseObject({ city: z.string() })],
    ['valibot', toStandardJsonSchema(v.looseObject({ city: v.string() }))],
    ['arktype', type({ city: 'string' })],
  ])('T17: __proto__ for a schema of %s: the tool runs without it', async (_, input) => {
    const run = jest.fn((given: unknown) => Object.keys(given as object).join());
    const lookup = tool({ name: 'lookup', description: 'Looks a city up.', input, run });
    const json = '{"city":"a","__proto__":{"polluted":1},"b":{"__proto__":1}}';
    const model = scriptedModel([{ type: 'toolCall', name: 'lookup', json }], [text('done')]);
    const reply = await createAgent({ model, tools: [lookup] }).call('?');
    expect(reply.toolCalls[0]?.output).toBe('city,b');
    expect(Object.getPrototypeOf(run.mock.calls[0]?.[0])).toBe(Object.prototype);
  });

  it.each([
    ['a list for an object', '["a"]', /not a JSON object/],
    ['a text for an object', '"city"', /not a JSON object/],
    ['null', 'null', /is required/],
    ['a number', '1e999', /not a JSON object/],
    ['a list for a text', '{"city":["a"]}', /city: must be string \(received \["a"\]\)/],
    ['an object for a text', '{"city":{"toString":"x"}}', /city: must be string/],
    ['100,000 levels', `{"city":${nested(100_000)}}`, /not a JSON object/],
    ['101 levels', `{"city":"a","any":${nested(101)}}`, /not a JSON object/],
    [
      '1 MB of a wrong type',
      `{"city":[${'1,'.repeat(500_000)}1]}`,
      /city: must be string \(received \[1,1,/,
    ],
    ['10 MB that are no JSON', `{"city":"${'x'.repeat(10_000_000)}`, /not a JSON object/],
    ['what breaks off', '{"city":"a', /not a JSON object/],
  ])('X11: %s: the tool does not run, and the model reads in few words', async (_, json, told) => {
    const { seen, output } = await use(json);
    expect(seen).toEqual([]);
    expect(output).toMatch(told);
    expect(output.length).toBeLessThan(2_000);
  });

  it.each(['__proto__', 'toString', 'constructor', 'hasOwnProperty', '', ' ', '../../x', '\0'])(
    'I3: the name %j: no tool of that name',
    async (name) => {
      const { seen, output } = await use('{"city":"a"}', name);
      expect(seen).toEqual([]);
      expect(output).toBe(`No tool is named '${name}'. The tools are: lookup.`);
    },
  );

  it.each(['__proto__', 'toString', 'constructor', 'same', ''])(
    'X7: the id %j, three times in a message: each call runs once, with an id of its own',
    async (id) => {
      const run = jest.fn(() => 'ran');
      const count = tool({ name: 'count', description: 'Counts.', run });
      const uses = [0, 1, 2].map((index) => ({
        ...({ type: 'toolCall', name: 'count', id, index } as const),
        json: `{"n":${index}}`,
      }));
      const model = scriptedModel(uses, [text('done')]);
      const reply = await createAgent({ model, tools: [count] }).call('?');
      expect(run).toHaveBeenCalledTimes(3);
      const ids = reply.toolCalls.map(({ toolCallId }) => toolCallId);
      expect(new Set(ids).size).toBe(3);
      expect(reply.toolCalls.every(({ isError }) => !isError)).toBe(true);
    },
  );

  it.each(['__proto__', 'toString', 'constructor', 'same', ''])(
    'X7: the id %j, in three messages: each call runs once, with an id of its own',
    async (id) => {
      const run = jest.fn(() => 'ran');
      const count = tool({ name: 'count', description: 'Counts.', run });
      const turns = [0, 1, 2].map((n) => [
        { type: 'toolCall', name: 'count', id, index: 0, json: `{"n":${n}}` } as const,
      ]);
      const model = scriptedModel(...turns, [text('done')]);
      const reply = await createAgent({ model, tools: [count] }).call('?');
      expect(run).toHaveBeenCalledTimes(3);
      expect(new Set(reply.toolCalls.map(({ toolCallId }) => toolCallId)).size).toBe(3);
    },
  );
});
