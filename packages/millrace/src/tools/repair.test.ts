import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { linesDialect, textTools } from '@millrace/text-tools';
import { createAgent, type Model, tool } from '../index.js';
import { record, scriptedModel, text } from '../testing/index.js';
import { readJson } from '../values/read-json.js';
import { isRecord } from '../values/json.js';
import { jsonSchema } from '../schema/index.js';

const repaired = (text: string) => {
  const reading = readJson(text);
  return 'value' in reading && isRecord(reading.value) ? reading.value : undefined;
};

describe('X11: arguments that are not JSON', () => {
  it.each([
    ['quotes of another kind', `{'city': 'Oslo'}`, { city: 'Oslo' }],
    ['keys without quotes', `{city: "Oslo", days: 3}`, { city: 'Oslo', days: 3 }],
    ['a comma too many', `{"city": "Oslo", "days": [1, 2,],}`, { city: 'Oslo', days: [1, 2] }],
    ['a comma too few', `{"city": "Oslo" "days": 3}`, { city: 'Oslo', days: 3 }],
    [
      'comments',
      `{"city": "Oslo", // the capital\n "days": 3 /* or 4 */}`,
      { city: 'Oslo', days: 3 },
    ],
    [
      'an address, which is no comment',
      `{'url': 'http://a.example/b'}`,
      { url: 'http://a.example/b' },
    ],
    [
      'words of Python',
      `{'dry': True, 'wet': False, 'rest': None}`,
      { dry: true, wet: false, rest: null },
    ],
    ['a fence', '```json\n{"city": "Oslo",}\n```', { city: 'Oslo' }],
    ['a bare line break in a text', '{"text": "one\ntwo"}', { text: 'one\ntwo' }],
    ['a bracket missing at the end', `{"a": {"b": 1}`, { a: { b: 1 } }],
    ['a bracket too many', `{"a": 1}}`, { a: 1 }],
    ['a comma after the end', `{"a": 1},`, { a: 1 }],
    ['quotes in a text that are not escaped', `{"q": "say "hi" now"}`, { q: 'say "hi" now' }],
    ['quotes within quotes', `{'say': 'it is "cold"'}`, { say: 'it is "cold"' }],
    ['escapes', String.raw`{'a': 'tab\tand \u00e9'}`, { a: 'tab\tand é' }],
  ])('are repaired if they have %s', (_, broken, meant) => {
    expect(repaired(broken)).toEqual(meant);
  });

  it.each([
    ['the end is missing', `{"city": "Os`],
    ['a bracket is missing', `{"list": [1, 2}`],
    ['a bracket is missing after a number', `{"a": {"b": 1`],
    ['a list is split at quotes that are not escaped', `{"q": ["SELECT "a", "b" FROM t"]}`],
    ['a list may be split at such quotes', `{"q": ["SELECT a", "b" FROM t" u"]}`],
    ['such quotes are followed by another key', `{"q": "say "hi" now", "n": 1}`],
    ['a key is there twice in valid JSON', `{"a": 1, "b": {"c": 2, "c": 3}}`],
    ['a value is missing', `{"city": }`],
    ['a value is no value', `{"city": undefined}`],
    ['something is left out', `{"list": [1, 2, ...]}`],
    ['they are wrapped in a call', `callback({"city": "Oslo"})`],
    ['they are a list', `['Oslo']`],
    ['they are prose', 'I would look at Oslo.'],
    ['there are two of them', `{"city": "Oslo"} {"city": "Rome"}`],
    ['they are nested too deeply', `{'a': ${'['.repeat(200)}${']'.repeat(200)}}`],
    ['they are huge', `{'a': '${'x'.repeat(200_000)}'}`],
    ['there is nothing', ''],
    ['a word has marks of a comment in it', '{dir: a//b\n}'],
    ['there are other marks between values', '{a: 1; b: 2}'],
    ['a key is there twice', `{a: 'x', a: 'y'}`],
    ['a mark escapes nothing, as in a path', String.raw`{"path": "C:\Users\dev"}`],
    ['a mark escapes nothing, as in a pattern', String.raw`{'pattern': '\d+'}`],
    ['a code is cut', String.raw`{"a": "\u00e"}`],
  ])('are not repaired where %s', (_, broken) => {
    expect(repaired(broken)).toBeUndefined();
  });

  it('are what they were, where only their form was broken', () => {
    const word = fc.stringMatching(/^[a-z]{1,6}$/);
    const value = fc.oneof(word, fc.integer(), fc.boolean(), fc.array(word, { maxLength: 3 }));
    fc.assert(
      fc.property(fc.dictionary(word, value, { minKeys: 1, maxKeys: 4 }), (input) => {
        const json = JSON.stringify(input);
        for (const broken of [
          json.replaceAll('"', "'"),
          json.replaceAll('}', ',}'),
          json.replace('{', '{ // why not\n'),
        ]) {
          expect(repaired(broken)).toEqual(input);
        }
      }),
    );
  });

  it('X13: that are made to take long do not', () => {
    const hostile = [
      ...['"', "'", '`', '“', '\\', '/*', '//', '[', '{', '"\\"', '{"a":', '\n'].map(
        (mark) => `{${mark.repeat(9_000 / mark.length)}}`,
      ),
      `\`\`\`${' '.repeat(9_000)}x`,
    ];
    for (const text of hostile) {
      const [before, started] = [process.cpuUsage(), performance.now()];
      repaired(text);
      const { user, system } = process.cpuUsage(before);
      const took = Math.min(performance.now() - started, (user + system) / 1_000);
      expect(took).toBeLessThan(1_000);
    }
  });

  it('that were cut off are never taken for whole, unless only brackets are missing', () => {
    const whole = { city: 'Oslo', days: [1, { n: 2 }], note: 'a } b' };
    const json = JSON.stringify(whole);
    for (const text of [json, json.replaceAll('"', "'"), json.replace(',', ',,')]) {
      for (let length = 0; length < json.length; length += 1) {
        const cut = text.slice(0, length);
        const found = repaired(cut);
        if (found !== undefined) expect(cut).toMatch(/["'\]}]$/);
        expect(whole).toMatchObject(found ?? {});
      }
    }
  });

  const lookup = tool({
    name: 'lookup',
    description: 'Looks a city up.',
    input: jsonSchema({
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
    }),
    run: ({ city }) => `found ${city}`,
  });

  it.each([
    ['a bracket too many', `{"city": "Oslo"}}`, true],
    ['a bracket missing after a complete value', `{"city": "Oslo"`, true],
    ['a comma after the object', `{"city": "Oslo"},`, true],
    ['comments', `{"city": "Oslo" /* or Rome */} // done`, true],
    ['a key twice, with different values', `{"city": "Oslo", "city": "Rome"}`, false],
    ['a key twice, with the same value', `{"city": "Oslo", "city": "Oslo"}`, true],
    ['a text that is cut', `{"city": "Os`, false],
    ['quotes between items', `{"city": ["a "b", "c" d"]}`, false],
  ])('mean the same to a native model and in text: %s', async (_, json, runs) => {
    const ran = async (model: Model) => {
      const { toolCalls } = await createAgent({ model, tools: [lookup] }).call('?');
      return toolCalls.map(({ isError, output }) => (isError ? 'refused' : output));
    };
    const native = scriptedModel([{ type: 'toolCall', name: 'lookup', json }], [text('Done.')]);
    const written = scriptedModel(
      [text(`Action: lookup\nAction Input: ${json}`)],
      [text('Final Answer: Done.')],
    );
    const expected = runs ? ['found Oslo'] : ['refused'];
    expect(await ran(native)).toEqual(expected);
    expect((await ran(textTools(written, linesDialect()))).slice(0, 1)).toEqual(
      runs ? expected : [],
    );
  });

  it('are reported by an event with what was before and after, and are validated', async () => {
    const model = scriptedModel(
      [
        { type: 'toolCall', name: 'lookup', json: `{'city': 'Oslo'}` },
        { type: 'toolCall', name: 'lookup', json: `{'town': 'Oslo'}` },
      ],
      [text('done')],
    );
    const events = await record(createAgent({ model, tools: [lookup] }).stream$('?'));
    expect(events.filter(({ type }) => type === 'repaired')).toMatchObject([
      { before: `{'city': 'Oslo'}`, toolCall: { input: { city: 'Oslo' } } },
      { before: `{'town': 'Oslo'}`, toolCall: { input: { town: 'Oslo' } } },
    ]);
    const results = events.flatMap((event) => (event.type === 'postActing' ? [event.result] : []));
    expect(results.map(({ isError }) => isError)).toEqual([false, true]);
    // The model sees what was run, as JSON.
    expect(model.requests[1]?.messages.at(-2)?.content).toMatchObject([
      { input: { city: 'Oslo' } },
      { input: { town: 'Oslo' } },
    ]);
  });

  it('that cannot be repaired are reported to the model, and run nothing', async () => {
    const model = scriptedModel(
      [{ type: 'toolCall', name: 'lookup', json: `{"city": "Os` }],
      [text('done')],
    );
    const events = await record(createAgent({ model, tools: [lookup] }).stream$('?'));
    const told = events.filter(({ type }) => type === 'repaired' || type === 'postActing');
    expect(told).toMatchObject([{ type: 'postActing', result: { isError: true } }]);
  });
});
