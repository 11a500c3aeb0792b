import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { verdictOn } from './validate.test-support.js';

const schema = {
  type: 'object',
  properties: {
    number: { type: 'number', maximum: 5 },
    integer: { type: 'integer' },
    any: {},
    list: { type: 'array', items: { type: 'number' } },
  },
};

const parsed = (text: string): unknown => JSON.parse(text);

describe('T5: numbers that JSON can write, but nothing can hold', () => {
  it.each([
    ['{"number":1e999}', 'number'],
    ['{"integer":-1e999}', 'integer'],
    ['{"any":1e999}', 'any'],
    ['{"any":{"deep":[0,1e999]}}', 'any.deep.1'],
    ['{"list":[1,1e999]}', 'list.1'],
  ])('%s is a problem, reported once', (json, path) => {
    const problems = [`${path}: must be a number that is not too large`];
    expect(verdictOn(schema, parsed(json)).problems).toEqual(problems);
    expect(verdictOn(schema, parsed(json), { coerceInput: true }).problems).toEqual(problems);
  });

  it('are a problem of a Standard Schema that takes anything, too', () => {
    const loose = z.object({ any: z.unknown() });
    expect(verdictOn(loose, parsed('{"any":[1e999]}')).problems).toEqual([
      'any.0: must be a number that is not too large',
    ]);
  });

  it('are not reported if their key is left out', () => {
    expect(verdictOn(schema, parsed('{"number":1,"more":1e999}')).value).toEqual({ number: 1 });
  });

  it('I13: are no number if the program gives them, and the model reads only that', () => {
    const hidden = { number: Infinity };
    expect(verdictOn(schema, {}, { hidden }).problems).toEqual([
      'number: the value that the program sets is not valid',
    ]);
    expect(verdictOn(schema, {}, { hidden: { any: Infinity } }).valid).toBe(true);
  });
});

describe('T5: coerceInput', () => {
  it.each([
    ['1e999'],
    ['-1e999'],
    ['12345678901234567891'],
    ['9007199254740992'],
    ['-9007199254740992'],
    ['1e21'],
  ])('leaves the text %j, which is no number', (text) => {
    const options = { coerceInput: true };
    expect(verdictOn(schema, { integer: text }, options).problems).toEqual([
      `integer: must be integer (received "${text}")`,
    ]);
    expect(verdictOn(schema, { number: text }, options).problems).toEqual([
      `number: must be number (received "${text}")`,
    ]);
  });

  it.each([
    ['9007199254740991', 9_007_199_254_740_991],
    ['-9007199254740991', -9_007_199_254_740_991],
    ['1e3', 1_000],
    ['-0.5e-3', -0.000_5],
  ])('reads %j as the number that it is', (text, number) => {
    const open = { type: 'object', properties: { n: { type: 'number' } } };
    expect(verdictOn(open, { n: text }, { coerceInput: true }).value).toEqual({ n: number });
  });
});
