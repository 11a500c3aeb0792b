import { describe, expect, it } from '@jest/globals';
import { type Filling, fillArguments, insist } from './fill-arguments.js';
import { readSlots } from './read-slots.js';

const fill = (
  text: string,
  properties: object,
  required: readonly string[] = Object.keys(properties),
  reference?: string,
): Filling =>
  fillArguments(readSlots({ type: 'object', properties, required }), text, { reference });

const firstInputs = ({ calls }: Filling) => calls.map(([input]) => input);

describe('fillArguments', () => {
  it('fills the most particular parameter first, and keeps the order of the schema', () => {
    const filling = fill('note for ada@example.com: lunch', {
      text: { type: 'string' },
      to: { type: 'string', format: 'email' },
    });
    expect(filling.calls).toEqual([[{ text: 'lunch', to: 'ada@example.com' }]]);
    expect(Object.keys(filling.calls[0]?.[0] ?? {})).toEqual(['text', 'to']);
  });

  it('makes a call of each name that is joined', () => {
    const city = { city: { type: 'string' } };
    expect(firstInputs(fill('in Rome, Oslo and Paris', city))).toEqual([
      { city: 'Rome' },
      { city: 'Oslo' },
      { city: 'Paris' },
    ]);
    expect(firstInputs(fill('in Rome when Oslo sleeps', city))).toEqual([{ city: 'Rome' }]);
  });

  it('makes a list of them where the parameter takes one', () => {
    const cities = {
      cities: { type: 'array', items: { type: 'string', examples: ['Europe/Rome'] } },
    };
    expect(firstInputs(fill('in Rome and Oslo', cities))).toEqual([
      { cities: ['Europe/Rome', 'Europe/Oslo'] },
    ]);
  });

  it('tells what goes where by prepositions', () => {
    const code = { type: 'string', examples: ['USD'] };
    const filling = fill('5 from GBP to CHF', { to: code, from: code });
    expect(firstInputs(filling)).toEqual([{ to: 'CHF', from: 'GBP' }]);
  });

  it('has another reading where a value has one', () => {
    const [readings] = fill('the readme', { path: { type: 'string' } }).calls;
    expect(readings).toEqual([{ path: 'README.md' }, { path: 'README' }]);
  });

  it('says what is missing, and leaves out what may be', () => {
    const filling = fill('nothing', { count: { type: 'number' }, deep: { type: 'boolean' } }, [
      'count',
    ]);
    expect(filling.missing.map(({ name }) => name)).toEqual(['count']);
    expect(firstInputs(filling)).toEqual([{}]);
  });

  it('takes a default, a constant, or an earlier result', () => {
    expect(firstInputs(fill('x', { unit: { enum: ['K', 'C'], default: 'C' } }))).toEqual([
      { unit: 'C' },
    ]);
    expect(firstInputs(fill('x', { version: { const: 2 } }))).toEqual([{ version: 2 }]);
    expect(firstInputs(fill('set it', { level: { type: 'number' } }, ['level'], '7'))).toEqual([
      { level: 7 },
    ]);
    expect(fill('set it', { level: { type: 'number' } }).waits).toBe(true);
  });

  it('keeps hostile names of parameters to the input itself', () => {
    const properties = JSON.parse('{"__proto__": {"type": "number"}}') as object;
    const [input] = firstInputs(fill('take 3', properties));
    expect(Object.hasOwn(input ?? {}, '__proto__')).toBe(true);
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
  });
});

describe('insist', () => {
  it('takes values from the declaration, and the text for a general parameter', () => {
    const properties = {
      unit: { enum: ['K', 'C'] },
      query: { type: 'string' },
      count: { type: 'number', examples: [4] },
    };
    const filling = insist(fill('go on', properties), 'go on');
    expect(firstInputs(filling)).toEqual([{ unit: 'K', query: 'go', count: 4 }]);
  });

  it('invents nothing', () => {
    const filling = insist(fill('x', { count: { type: 'number' } }), 'x');
    expect(filling.missing).toHaveLength(1);
  });
});
