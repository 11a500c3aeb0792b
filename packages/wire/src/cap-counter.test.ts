import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { ModelChunk } from 'millrace';
import { createCapCounter } from './cap-counter.js';
import { type Caps, capsOf, defaultCaps } from './caps.js';
import { createNesting, measure } from './nesting.js';

type ToolCall = Omit<Extract<ModelChunk, { type: 'toolCall' }>, 'type'>;

const tooLarge: unknown = expect.objectContaining({ code: 'tooLarge' });

/** Counts these, and tells how many they are if none goes over a cap. */
const passed = (chunks: readonly ModelChunk[], caps: Partial<Caps>): number => {
  const count = createCapCounter('Acme', { ...defaultCaps, ...caps });
  return chunks.map(count).length;
};

const uses = (...pieces: readonly ToolCall[]): readonly ModelChunk[] =>
  pieces.map((piece) => ({ type: 'toolCall', ...piece }));

const times = <T>(count: number, make: (at: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, at) => make(at));

describe('createCapped', () => {
  it.each<[string, readonly ToolCall[], number]>([
    [
      'an index, with id and name once',
      [
        { index: 0, id: 'a', name: 'f' },
        { index: 0, json: '{' },
        { index: 1, id: 'b', name: 'f' },
        { index: 1, json: '{' },
      ],
      2,
    ],
    [
      'an id on every piece',
      [
        { index: 0, id: 'a', name: 'f' },
        { index: 0, id: 'a', json: '{' },
        { index: 0, id: 'a', name: 'f', json: '}' },
      ],
      1,
    ],
    [
      'always the index 0, and another id',
      [
        { index: 0, id: 'a', name: 'f' },
        { index: 0, json: '{}' },
        { index: 0, id: 'b', name: 'f' },
        { index: 0, json: '{}' },
      ],
      2,
    ],
    [
      'a name only',
      [
        { name: 'f', input: {} },
        { name: 'f', input: {} },
        { name: 'f', input: {} },
      ],
      3,
    ],
    [
      'an empty id',
      [
        { index: 0, id: 'a', name: 'f' },
        { index: 0, id: '', json: '{}' },
      ],
      1,
    ],
    [
      'a name that comes later',
      [
        { index: 0, id: 'a' },
        { index: 0, name: 'f' },
        { index: 0, json: '{}' },
      ],
      1,
    ],
    [
      'pieces side by side',
      [
        { index: 0, id: 'a', name: 'f' },
        { index: 1, id: 'b', name: 'f' },
        { index: 0, json: '{' },
        { index: 1, json: '{' },
        { index: 0, json: '}' },
      ],
      2,
    ],
  ])('X6: counts tool calls that are distinguished by %s', (_, pieces, count) => {
    expect(passed(uses(...pieces), { toolCalls: count })).toBe(pieces.length);
    if (count > 1) {
      expect(() => passed(uses(...pieces), { toolCalls: count - 1 })).toThrow(tooLarge);
    }
  });

  it.each<[string, (at: number) => ToolCall]>([
    ['index', (index) => ({ index })],
    ['gap in the indexes', (at) => ({ index: at * 1e9, json: '{}' })],
    ['id', (at) => ({ id: `__proto__${at}`, json: '{}' })],
    ['id at one index', (at) => ({ index: 0, id: `${at}` })],
    ['name', (at) => ({ index: 0, id: 'a', name: `f${at}` })],
    ['index and id in all pairs', (at) => ({ index: at % 20, id: `${Math.floor(at / 20)}` })],
    ['whole input', (at) => ({ index: 0, id: 'a', name: 'f', input: { at } })],
  ])('X6: a new %s for each piece is no way round the cap', (_, make) => {
    expect(() => passed(uses(...times(129, make)), {})).toThrow(tooLarge);
    expect(passed(uses(...times(128, make)), {})).toBe(128);
  });

  it('X6: counts the arguments of each tool use for itself', () => {
    const pieces = uses(...times(40, (at) => ({ index: at % 4, json: '0123456789' })));
    expect(passed(pieces, { argumentLength: 100 })).toBe(40);
    expect(() => passed(pieces, { argumentLength: 99 })).toThrow('caps.argumentLength');
    expect(() =>
      passed(uses({ name: 'f', input: { text: 'x'.repeat(200) } }), { argumentLength: 100 }),
    ).toThrow('caps.argumentLength');
  });

  it('X6: counts the name and id of a tool use, once each', () => {
    const long = 'x'.repeat(60);
    const repeated = times(9, () => ({ index: 0, name: 'f', id: long, json: '1' }));
    expect(passed(uses(...repeated), { argumentLength: 70 })).toBe(9);
    for (const chunk of [{ name: long }, { name: 'f', id: long }]) {
      expect(() => passed(uses({ index: 0, ...chunk }), { argumentLength: 50 })).toThrow(
        'caps.argumentLength',
      );
    }
  });

  it('X6: counts text, thinking and signatures together, and media on their own', () => {
    const chunks: readonly ModelChunk[] = [
      { type: 'text', text: '12345' },
      { type: 'thinking', text: '12345', signature: '12345' },
    ];
    expect(passed(chunks, { textLength: 15 })).toBe(2);
    expect(() => passed(chunks, { textLength: 14 })).toThrow('caps.textLength');
    const source = { kind: 'base64', mediaType: 'image/png', data: 'x'.repeat(100) } as const;
    const image: ModelChunk = { type: 'block', block: { type: 'image', source } };
    expect(passed([image, image], { textLength: 50, eventLength: 500 })).toBe(2);
    expect(() => passed([image, image], { eventLength: 300 })).toThrow('caps.eventLength');
  });

  it('X6: measures how deep an input is without recursion', () => {
    const nested = (depth: number): unknown => JSON.parse('['.repeat(depth) + ']'.repeat(depth));
    expect(passed(uses({ input: nested(100) }), {})).toBe(1);
    expect(() => passed(uses({ input: nested(101) }), {})).toThrow('caps.depth');
    expect(() => passed(uses({ input: nested(100_000) }), {})).toThrow('caps.');
  });
});

describe('createNesting', () => {
  it('X6: finds the depth of any JSON in any pieces', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.integer({ min: 1, max: 9 }), (value, size) => {
        const text = JSON.stringify(value);
        const depthOf = createNesting();
        let depth = 0;
        for (let at = 0; at < text.length; at += size) depth = depthOf(text.slice(at, at + size));
        expect(depth).toBe(measure(value).depth);
      }),
    );
  });

  it('counts no brackets in strings', () => {
    expect(createNesting()('{"a":"[[[\\"[[["}')).toBe(1);
  });
});

describe('capsOf', () => {
  it('fills up what is set', () => {
    expect(capsOf({ depth: 3 })).toEqual({ ...defaultCaps, depth: 3 });
    expect(capsOf({ textLength: Infinity }).textLength).toBe(Infinity);
  });

  it('takes a cap that is undefined for absent, and refuses one that there is not', () => {
    expect(capsOf({ depth: undefined } as unknown as Partial<Caps>)).toEqual(defaultCaps);
    expect(() => capsOf({ deep: 3 } as Partial<Caps>)).toThrow(/'deep'.*depth/);
    expect(() => capsOf({ ['__proto__']: 3 } as Partial<Caps>)).toThrow("'__proto__'");
  });

  it.each([0, -1, NaN])('refuses a cap of %p', (depth) => {
    expect(() => capsOf({ depth })).toThrow("'depth'");
  });
});
