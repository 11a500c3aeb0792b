import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { askedBy, entryFor, fieldFor, readEntry } from './schema-fields.js';

const order = {
  type: 'object',
  required: ['full_name', 'count', 'size'],
  properties: {
    full_name: { type: 'string', minLength: 2, maxLength: 20 },
    count: { type: 'integer', minimum: 1, maximum: 9 },
    size: { enum: ['S', 'M', 3] },
    isGift: { type: 'boolean', default: true },
    mail: { type: 'string', format: 'email' },
    extras: { type: 'array', items: { enum: ['ice', 'salt'] } },
    place: { type: 'object', properties: { city: { type: 'string', title: 'Your city' } } },
  },
};

describe('the form of a schema', () => {
  it('has a field for each property, in words', () => {
    const { kind, fields } = fieldFor(order);
    expect(kind).toBe('group');
    expect(fields.map(({ label, kind: it, isRequired }) => [label, it, isRequired])).toEqual([
      ['Full name', 'text', true],
      ['Count', 'number', true],
      ['Size', 'choice', true],
      ['Is gift', 'flag', false],
      ['Mail', 'text', false],
      ['Extras', 'choices', false],
      ['Place', 'group', false],
    ]);
    expect(fields.at(-1)?.fields[0]?.label).toBe('Your city');
  });

  it('reads what was entered, and leaves out what is empty', () => {
    const field = fieldFor(order);
    const entry = {
      ...(entryFor(field) as object),
      ...{ full_name: ' Ann ', count: '2', size: [2], extras: [1], place: { city: 'Oslo' } },
    };
    expect(readEntry(field, entry)).toEqual({
      value: {
        ...{ full_name: 'Ann', count: 2, size: 3, isGift: true, extras: ['salt'] },
        place: { city: 'Oslo' },
      },
    });
  });

  it('names each problem at its field', () => {
    const wrong = { full_name: 'A', count: '1.5', mail: 'nobody', place: {} };
    expect(readEntry(fieldFor(order), wrong).problems).toEqual({
      full_name: 'At least 2 characters.',
      count: 'Enter a whole number.',
      size: 'Choose one.',
      mail: 'Enter an email address.',
    });
    const count = (text: string) => readEntry(fieldFor({ type: 'integer', maximum: 9 }), text);
    expect([count('ten'), count('10'), count('')]).toEqual([
      { problems: { '': 'Enter a number.' } },
      { problems: { '': 'Up to 9.' } },
      { problems: { '': 'This is needed.' } },
    ]);
  });

  it('is a field for JSON if nothing else fits', () => {
    let deep: object = { type: 'string' };
    for (let at = 0; at < 50; at += 1) deep = { type: 'object', properties: { deep } };
    const depth = (field: ReturnType<typeof fieldFor>): number =>
      1 + Math.max(0, ...field.fields.map(depth));
    expect(depth(fieldFor(deep as Record<string, unknown>))).toBe(4);
    for (const schema of [{}, { $ref: '#' }, { type: 'object' }, { type: ['string', 'null'] }]) {
      expect(fieldFor(schema).kind).toBe('json');
    }
    expect(readEntry(fieldFor({}), '{"a":1}')).toEqual({ value: { a: 1 } });
    expect(readEntry(fieldFor({}), '{').problems?.['']).toMatch(/not valid JSON/u);
  });

  it('takes any schema and any entry without an error', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (schema, entry) => {
        const field = fieldFor(schema);
        const read = [readEntry(field, entryFor(field)), readEntry(field, entry as string)];
        expect(read.every((it) => 'value' in it || it.problems !== undefined)).toBe(true);
      }),
    );
  });
});

describe('the request of a suspended tool', () => {
  it.each([
    ['Where?', { question: 'Where?' }],
    [
      { message: 'Where?', schema: { type: 'number' } },
      { question: 'Where?', schema: { type: 'number' } },
    ],
    [
      { question: 'Which?', choices: ['a', 'b'] },
      { question: 'Which?', schema: { enum: ['a', 'b'] } },
    ],
    [{ want: 'city' }, { rest: { want: 'city' } }],
    [null, {}],
    [3, { rest: 3 }],
  ])('is read: %j', (request, asked) => {
    expect(askedBy(request)).toEqual(asked);
  });
});
