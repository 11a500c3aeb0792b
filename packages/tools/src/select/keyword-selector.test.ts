import { describe, expect, it } from '@jest/globals';
import { createAgent, selectTools, tool, type Tool, type ToolSelector } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { scriptedModel, text } from 'millrace/testing';
import { isQuick } from '../is-quick.test-support.js';
import { fortyTools, requests } from './forty-tools.test-support.js';
import { keywordSelector, type KeywordSelectorOptions } from './keyword-selector.js';

type Select = (request: Parameters<ToolSelector>[0]) => readonly string[];

/** It answers at once. */
const selector = (options?: KeywordSelectorOptions): Select => keywordSelector(options) as Select;

const pick = (
  request: string,
  tools: readonly Tool[] = fortyTools,
  options?: KeywordSelectorOptions,
): readonly string[] => selector(options)({ text: request, tools });

const named = (name: string, description = 'Does it.', properties: object = {}): Tool =>
  tool({ name, description, input: jsonSchema({ type: 'object', properties }), run: () => 'ran' });

describe('T11: keywordSelector', () => {
  it('T11: finds the right one of forty tools: of forty requests, at least 32 among the first three', () => {
    const found = requests.filter(([request, name]) => pick(request).slice(0, 3).includes(name));
    expect(found.length).toBeGreaterThanOrEqual(32);
    const first = requests.filter(([request, name]) => pick(request)[0] === name);
    expect(first.length).toBeGreaterThanOrEqual(24);
  });

  it('T11: shows few of them, so that it is worth it', () => {
    const shown = requests.map(([request]) => pick(request).length);
    expect(shown.reduce((sum, count) => sum + count, 0) / shown.length).toBeLessThan(6);
  });

  it.each([
    ['send_parcel', 'parcels'],
    ['send-parcel', 'parcel'],
    ['send.parcel', 'parcel'],
    ['sendParcel', 'parcel'],
    ['sendHTTPParcel', 'parcel'],
    ['sendHTTPParcel', 'HTTP'],
    ['send_parcel', 'send_parcel'],
    ['tracking', 'track my order'],
  ])('T11: reads the words of the name %s in %j', (name, request) => {
    expect(pick(request, [named('other'), named(name)])).toEqual([name]);
  });

  it('T11: looks at the name first, then the description, the parameters and what they say', () => {
    const tools = [
      named('a', 'Does.', { x: { description: 'Where the parcel is.' } }),
      named('b', 'Does.', { parcel: true }),
      named('c', 'Handles a parcel.'),
      named('parcel'),
      named('e', 'Does.', { x: true }),
    ];
    expect(pick('parcel', tools, { threshold: 0 })).toEqual(['parcel', 'c', 'b', 'a']);
  });

  it('T11: drops what scores less than the threshold', () => {
    const tools = [named('parcel'), named('c', 'Does something else, and then a parcel or two.')];
    expect(pick('parcel', tools, { threshold: 0 })).toEqual(['parcel', 'c']);
    expect(pick('parcel', tools, { threshold: 1 })).toEqual(['parcel']);
    expect(pick('parcel', tools)).toEqual(['parcel', 'c']);
  });

  it('T11: forgives a misspelling, as far as configured', () => {
    const tools = [named('weather'), named('other')];
    expect(pick('wether', tools)).toEqual(['weather']);
    expect(pick('wether', tools, { fuzziness: 0 })).toEqual([]);
  });

  it.each(['', '   ', 'what is it, and why do you say so?', '!?', '天気', 'zzzzzz'])(
    'T11: picks nothing for %j, so that all are shown',
    (request) => {
      expect(pick(request)).toEqual([]);
    },
  );

  it('T11: makes its index once for a list of tools, and again for another', () => {
    let read = 0;
    const counted = (it: Tool): Tool => ({
      ...it,
      get description() {
        read += 1;
        return it.description;
      },
    });
    const tools = [named('parcel'), named('c'), named('d')].map(counted);
    const select = selector();
    const ask = (list: readonly Tool[]) => select({ text: 'parcel', tools: list });
    ask(tools);
    const once = read;
    expect(once).toBeGreaterThan(0);
    ask(tools);
    ask([...tools]);
    expect(read).toBe(once);
    expect(ask(tools.slice(0, 2))).toEqual(['parcel']);
    expect(read).toBeGreaterThan(once);
    expect(ask([])).toEqual([]);
    expect(ask([named('a'), named('parcels')])).toEqual(['parcels']);
  });

  it('T11: picks the tools that a model is shown', async () => {
    const model = scriptedModel([text('done')]);
    const agent = createAgent({ model, tools: fortyTools });
    await agent.call('where is my parcel', { use: [selectTools({ select: keywordSelector() })] });
    expect(model.requests[0]?.tools?.map(({ name }) => name)).toEqual(['track_shipment']);
  });

  it.each([
    ['10 MB of one word', 'a'.repeat(10_000_000), []],
    ['10 MB of words', 'x1 y2 '.repeat(1_700_000), []],
    [
      '10 MB before what is asked',
      `${'x1 y2 '.repeat(1_700_000)} where is my parcel`,
      ['track_shipment'],
    ],
    [
      '10 MB after what is asked',
      `where is my parcel ${'-'.repeat(10_000_000)}`,
      ['track_shipment'],
    ],
    ['10 MB of brackets', '(('.repeat(5_000_000), []],
    ['different words', Array.from({ length: 3_000 }, (_, n) => `w${n}x${n}`).join(' '), []],
    ['__proto__ and its like', '__proto__ constructor toString hasOwnProperty', []],
    ['regular expressions', '(a+)+$ [z-a] \\ (?<x> .* {1,2}', []],
    ['half characters', '\ud83d \ude00 \0', []],
  ])('T11: is quick with %s', (_, request, names) => {
    const select = selector();
    select({ text: 'weather', tools: fortyTools });
    expect(isQuick(100, () => select({ text: request, tools: fortyTools }))).toBe(true);
    expect(select({ text: request, tools: fortyTools })).toEqual(names);
  });

  it('T11: looks for the first and the last thirty words of a request', () => {
    const words = (count: number, letter: string) =>
      Array.from({ length: count }, (_, n) => `${letter}${n}`).join(' ');
    const picked = (before: number, after: number) =>
      pick(`${words(before, 'x')} parcel ${words(after, 'y')}`);
    expect(picked(29, 90)).toEqual(['track_shipment']);
    expect(picked(90, 29)).toEqual(['track_shipment']);
    expect(picked(60, 60)).toEqual([]);
  });

  it('T11: is quick with tools that say too much', () => {
    const tools = [
      named('endless', 'x1 y2 '.repeat(1_700_000)),
      named(
        'broad',
        'Does.',
        Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [n, {}])),
      ),
      named('parcel'),
      named('__proto__'),
      { ...named('odd'), inputSchema: { properties: { x: { description: ['parcel'] }, y: null } } },
      { ...named('odder'), inputSchema: { properties: 'parcel' } },
    ];
    expect(isQuick(300, () => pick('parcel', [...tools]))).toBe(true);
    expect(pick('parcel', tools)).toEqual(['parcel']);
  });

  it.each([
    [{ threshold: 2 }, /'threshold' must be a number from 0 to 1, not 2/],
    [{ threshold: Number.NaN }, /'threshold' must be/],
    [{ fuzziness: '1' }, /'fuzziness' must be a number from 0 to 0.5/],
    [{ top: 3 }, /has no option 'top'/],
  ])('T11: refuses %j', (options, message) => {
    expect(() => keywordSelector(options as never)).toThrow(message);
  });
});
