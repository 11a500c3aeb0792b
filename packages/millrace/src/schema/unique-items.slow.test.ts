import { describe, expect, it } from '@jest/globals';
import { verdictOn } from './validate.test-support.js';

const drafts = [
  'https://json-schema.org/draft/2020-12/schema',
  'https://json-schema.org/draft/2019-09/schema',
  'http://json-schema.org/draft-07/schema#',
];

describe.each(drafts)('X13: uniqueItems, in %s', ($schema) => {
  const problemsOf = (list: readonly unknown[], items?: object, uniqueItems = true) =>
    verdictOn(
      {
        $schema,
        type: 'object',
        properties: { list: { type: 'array', uniqueItems, ...(items && { items }) } },
      },
      { list },
    ).problems;

  it.each([
    ['keys in another order', '[{"a":1,"b":{"c":2,"d":3}},{"b":{"d":3,"c":2},"a":1}]'],
    ['the same number', '[{"a":1},{"a":1.0}]'],
    ['-0 and 0', '[[-0],[0]]'],
    ['lists', '[[1,[2]],[1,[2]]]'],
    ['nothing', '[null,null]'],
    ['a text that is a name of every object', '["__proto__","__proto__"]'],
  ])('finds %s', (_what, list) => {
    expect(problemsOf(JSON.parse(list) as unknown[])).toEqual([
      expect.stringContaining(
        'list: must NOT have duplicate items (items ## 0 and 1 are identical) (received [',
      ),
    ]);
  });

  it.each([
    ['types apart', '[1,"1",true,"true",null,"null",0,false,"",[],{},[[]],{"0":1},[1]]'],
    ['lists in another order', '[[1,2],[2,1]]'],
    ['texts that look like more', String.raw`["a\",\"b",["a","b"],["a\",\"b"],{"a":"b"}]`],
    ['one', '[{"a":1}]'],
    ['none', '[]'],
    ['keys that every object inherits', '[{"valueOf":1},{"toString":1},{"constructor":1},{}]'],
  ])('separates %s', (_what, list) => {
    expect(problemsOf(JSON.parse(list) as unknown[])).toEqual([]);
  });

  it('reports the last pair, also if all are texts, and nothing if it is false', () => {
    const list = ['a', 'b', 'a', 'c', 'b'];
    expect(problemsOf(list, { type: 'string' })).toEqual([
      expect.stringContaining('(items ## 1 and 4 are identical)'),
    ]);
    expect(problemsOf(list, { type: 'string' }, false)).toEqual([]);
  });

  it('looks at each item of a long list but once', () => {
    let reads = 0;
    const item = (n: number) =>
      Object.defineProperty({}, 'n', {
        enumerable: true,
        get: () => {
          reads += 1;
          return n;
        },
      });
    const list = Array.from({ length: 1_000 }, (_, n) => item(n));
    const schema = {
      $schema,
      type: 'object',
      properties: { list: { type: 'array', uniqueItems: true } },
    };
    const hidden = { list };
    expect(verdictOn(schema, {}, { hidden }).valid).toBe(true);
    expect(reads).toBe(1_000);
  });

  it('treats what JSON cannot hold as equal only if it is', () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    const schema = {
      $schema,
      type: 'object',
      properties: { list: { type: 'array', uniqueItems: true } },
    };
    const one = new Map();
    const apart = [one, new Map(), cycle, undefined, Number.NaN, { a: undefined }, {}, 1n];
    expect(verdictOn(schema, {}, { hidden: { list: apart } }).valid).toBe(true);
    expect(verdictOn(schema, {}, { hidden: { list: [one, one] } }).valid).toBe(false);
  });
});
