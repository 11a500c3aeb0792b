import { describe, expect, it } from '@jest/globals';
import { findValues, isAllowed } from './find-values.js';
import { readSlots, type Slot } from './read-slots.js';

const slotOf = (name: string, rules: object, required = true): Slot => {
  const schema = {
    type: 'object',
    properties: { [name]: rules },
    required: required ? [name] : [],
  };
  const [slot] = readSlots(schema);
  if (slot === undefined) throw new Error('There is no slot.');
  return slot;
};

const source = { reference: undefined, taken: [], ownStems: new Set<string>(), wholeText: false };

const valuesIn = (slot: Slot, text: string): readonly unknown[] =>
  findValues(slot, { ...source, text }).map(({ value }) => value);

describe('findValues', () => {
  it.each([
    ['expression', { type: 'string' }, 'what is 2 + 2', ['2 + 2']],
    ['expression', { type: 'string' }, 'evaluate `2x + 3`', ['2x + 3']],
    ['url', { type: 'string' }, 'see https://a.example/b, or so', ['https://a.example/b']],
    ['email', { type: 'string' }, 'to ada@example.com.', ['ada@example.com']],
    ['date', { type: 'string' }, 'on 2025-01-31 or so', ['2025-01-31']],
    ['unit', { enum: ['celsius', 'K'] }, 'in Celsius', ['celsius']],
    ['size', { enum: ['extra large', 1] }, 'an extra large one', ['extra large']],
    ['count', { type: 'integer', maximum: 9 }, 'give me 12 or 7 or 2.5', [7]],
    ['count', { type: 'number' }, 'give me two', [2]],
    ['deep', { type: 'boolean' }, 'a deep one', [true]],
    ['deep', { type: 'boolean' }, 'not deep', [false]],
    ['deep', { type: 'boolean' }, 'whatever', []],
    ['code', { type: 'string', examples: ['AB-1'] }, 'is it XY-22?', ['XY-22']],
    ['code', { type: 'string', pattern: '^x\\d{2}$' }, 'is it x22 or x3?', ['x22']],
    ['query', { type: 'string' }, 'how does the loop end?', ['loop end']],
    ['text', { type: 'string' }, 'say "good day" twice', ['good day']],
    ['text', { type: 'string' }, 'say this: good day', ['good day']],
    ['who', { type: 'string' }, 'greet Ada Lovelace', ['Ada Lovelace']],
    ['who', { type: 'string', maxLength: 2 }, 'greet Ada Lovelace', []],
    ['what', { type: 'object' }, 'anything', []],
  ])('finds %s: %j in %j', (name, rules, text, expected) => {
    expect(valuesIn(slotOf(name, rules), text)).toEqual(expected);
  });

  it('gives a place in the form that the examples have', () => {
    const zone = slotOf('zone', { type: 'string', examples: ['Europe/Berlin'] });
    const place = slotOf('place', { type: 'string', examples: ['Berlin', 'Europe/Berlin'] });
    const city = slotOf('city', { type: 'string' });
    const [inZone] = findValues(zone, { ...source, text: 'in Tokyo' });
    const [inPlace] = findValues(place, { ...source, text: 'in Tokyo' });
    expect(inZone).toMatchObject({ value: 'Asia/Tokyo', others: ['Tokyo'] });
    expect(inPlace).toMatchObject({ value: 'Tokyo', others: ['Asia/Tokyo'] });
    expect(valuesIn(city, 'in Tokyo')).toEqual(['Tokyo']);
  });

  it('takes a number that may be left out only beside its name', () => {
    const lines = slotOf('lines', { type: 'integer' }, false);
    const fromLine = slotOf('fromLine', { type: 'integer' }, false);
    expect(valuesIn(lines, 'the first 20 lines')).toEqual([20]);
    expect(valuesIn(fromLine, 'the first 20 lines')).toEqual([]);
    expect(valuesIn(fromLine, 'from line 20')).toEqual([20]);
    expect(valuesIn(lines, 'the 20 things')).toEqual([]);
  });

  it('leaves alone what is taken', () => {
    const slot = slotOf('count', { type: 'number' });
    const values = findValues(slot, { ...source, text: '1 2', taken: [{ start: 0, end: 1 }] });
    expect(values.map(({ value }) => value)).toEqual([2]);
  });
});

describe('isAllowed', () => {
  it('asks the schema', () => {
    const code = slotOf('code', { type: 'string', pattern: '^[ab]+$', minLength: 2 });
    expect(['ab', 'a', 'abc', ' '].map((value) => isAllowed(code, value))).toEqual([
      true,
      false,
      false,
      false,
    ]);
    expect(isAllowed(slotOf('flag', { type: 'boolean' }), 'true')).toBe(false);
  });
});
