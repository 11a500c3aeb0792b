import { describe, expect, it } from '@jest/globals';
import { firstValueFrom } from 'rxjs';
import { z } from 'zod';
import { createAgent, type JsonSchema, MillraceError, output, tool } from '../index.js';
import { record, scriptedModel, text, toolCall } from '../testing/index.js';
import { jsonSchema, type PatternEngine } from './index.js';
import { validatorFor, verdictOn } from './validate.test-support.js';

const trip = {
  type: 'object',
  properties: {
    city: { type: 'string' },
    days: { type: 'integer' },
    stops: {
      type: 'array',
      items: { type: 'object', properties: { name: { type: 'string' } } },
    },
  },
} as const;

const outputOf = async (
  options: Parameters<typeof jsonSchema>[1],
  input: Record<string, unknown>,
) => {
  const plan = tool({
    name: 'plan',
    description: 'Plans a trip.',
    input: jsonSchema(trip, options),
    run: (given) => given,
  });
  const model = scriptedModel([toolCall('plan', input)], [text('done')]);
  return (await createAgent({ model, tools: [plan] }).call('?')).toolCalls[0]?.output;
};

describe('T5: pruneInput', () => {
  const input = { city: 'Oslo', mood: 1, stops: [{ name: 'a' }, { name: 'b', mood: 2 }] };

  it('leaves unknown keys out by default', async () => {
    expect(await outputOf({}, input)).toBe('{"city":"Oslo","stops":[{"name":"a"},{"name":"b"}]}');
  });

  it('false makes each of them a problem, beside the others', async () => {
    expect(await outputOf({ pruneInput: false }, { ...input, city: 5 })).toBe(
      'The arguments for plan are invalid:\n- mood: is not a parameter\n- stops.1.mood: is not a parameter\n- city: must be string (received 5)',
    );
  });
});

describe('X13: what a schema may say', () => {
  it('of keys in allOf, anyOf, oneOf, if and $ref, pruning leaves alone', () => {
    const part = { type: 'object', properties: { a: { type: 'string' } } };
    for (const rule of [
      { allOf: [part] },
      { anyOf: [part] },
      { oneOf: [part] },
      { if: part, then: part },
      { $ref: '#/$defs/part' },
    ]) {
      const own = { type: 'object', properties: { b: { type: 'string' } }, ...rule };
      const schema = { type: 'object', properties: { part: own }, $defs: { part } };
      const input = { part: { a: 'x', b: 'y', more: 1 } };
      expect(verdictOn(schema, { ...input, more: 1 }).value).toEqual(input);
    }
  });

  it('in an $id is its own: two schemas of one $id do not meet', () => {
    const schema = (type: string) => ({
      $id: 'https://example.com/trip.json',
      type: 'object',
      properties: { days: { type } },
    });
    expect(verdictOn(schema('number'), { days: 3 }).valid).toBe(true);
    expect(verdictOn(schema('string'), { days: 3 }).valid).toBe(false);
    expect(verdictOn(schema('number'), { days: 3 }).valid).toBe(true);
  });
});

describe('T5: coerceInput', () => {
  it('reads a string as a number if the schema has a number; nothing else does', async () => {
    expect(await outputOf({ coerceInput: true }, { days: '5' })).toBe('{"days":5}');
    expect(await outputOf({ coerceInput: true }, { days: 'five' })).toContain('must be integer');
    for (const days of [true, '', ' ', '0x5', []]) {
      expect(await outputOf({ coerceInput: true }, { days })).toContain('must be integer');
    }
    expect(await outputOf({}, { days: '5' })).toContain('must be integer (received "5")');
  });

  it('does not change what the model is shown to have said', async () => {
    const model = scriptedModel([toolCall('plan', { days: '5' })], [text('done')]);
    const plan = tool({
      name: 'plan',
      description: 'Plans.',
      input: jsonSchema(trip, { coerceInput: true }),
      run: () => 1,
    });
    await createAgent({ model, tools: [plan] }).call('?');
    expect(model.requests[1]?.messages.at(-2)?.content).toMatchObject([{ input: { days: '5' } }]);
  });

  it('is an option of a JSON Schema alone: another schema decides itself how it reads', () => {
    const definition = { name: 'a', description: 'a', input: z.object({}), run: () => 1 };
    const misplaced: typeof definition = Object.assign({ coerceInput: true }, definition);
    expect(() => tool(misplaced)).toThrow(/tool\(\) has no option 'coerceInput'/);
  });
});

describe('jsonSchema()', () => {
  it.each([
    ['a schema of zod', z.object({ a: z.string() })],
    ['what it has made', jsonSchema(trip)],
  ])('refuses %s, which is given as it is', (_, schema) => {
    expect(() => jsonSchema(schema as never)).toThrow(/Pass other schemas to 'input' or output/);
  });
});

describe('X13: a schema whose branches refer to the whole', () => {
  const node = {
    type: 'object',
    properties: { kind: { type: 'string' }, child: { $ref: '#/$defs/node' } },
  };
  const schema = {
    type: 'object',
    properties: { tree: { $ref: '#/$defs/node' }, words: { enum: [{ anyOf: [{}] }] } },
    $defs: {
      node: {
        anyOf: [
          { ...node, required: ['a'] },
          { ...node, required: ['b'] },
          { ...node, required: ['kind'] },
        ],
      },
    },
  };
  const tree = (levels: number, leaf: object): object =>
    Array.from({ length: levels }).reduce<object>((child) => ({ kind: 'x', child }), leaf);
  const verdict = (input: unknown) => firstValueFrom(validatorFor(schema).validation$(input));

  it('is given up if it would take too long', async () => {
    expect(await verdict({ tree: tree(90, {}) })).toEqual({
      valid: false,
      problems: ['the input: is too complex to check'],
    });
  });

  it('is checked as any other as far as that goes, and again afterwards', async () => {
    expect(await verdict({ tree: tree(4, { kind: 'leaf' }) })).toMatchObject({ valid: true });
    expect(await verdict({ tree: tree(3, {}) })).toMatchObject({ valid: false });
    expect(await verdict({ words: { anyOf: [{}] } })).toMatchObject({ valid: true });
  });

  const doubling = (part: (next: object) => object): object => ({
    type: 'object',
    $ref: '#/$defs/0',
    $defs: Object.fromEntries(
      Array.from({ length: 41 }, (_, level) => [
        String(level),
        level === 40 ? { type: 'object' } : part({ $ref: `#/$defs/${level + 1}` }),
      ]),
    ),
  });

  it.each<[string, object]>([
    ['allOf', doubling((next) => ({ allOf: [next, next] }))],
    ['if and then', doubling((next) => ({ if: next, then: next }))],
    ['not', doubling((next) => ({ not: next, oneOf: [next, next] }))],
    ['a reference beside allOf', doubling((next) => ({ ...next, allOf: [next] }))],
  ])('is given up where %s doubles the work at each level', async (_, bomb) => {
    expect(await firstValueFrom(validatorFor(bomb as JsonSchema).validation$({}))).toEqual({
      valid: false,
      problems: ['the input: is too complex to check'],
    });
  });

  it('is given up where two rules for one key double the work at each level of the input', async () => {
    const node = {
      properties: { child: { $ref: '#/$defs/node' } },
      patternProperties: { '^c': { $ref: '#/$defs/node' } },
    };
    const validator = validatorFor({ type: 'object', ...node, $defs: { node } });
    expect(await firstValueFrom(validator.validation$(tree(60, {})))).toMatchObject({
      valid: false,
      problems: ['the input: is too complex to check'],
    });
  });
});

describe('X13: patterns of a schema', () => {
  const named = (pattern: string, patterns?: PatternEngine) =>
    tool({
      name: 'named',
      description: 'Takes a name.',
      input: jsonSchema(
        { type: 'object', properties: { name: { type: 'string', pattern } } },
        patterns && { patterns },
      ),
      run: () => 'taken',
    });
  const given = async (used: ReturnType<typeof named>, name: string) => {
    const model = scriptedModel([toolCall('named', { name })], [text('done')]);
    return record(createAgent({ model, tools: [used] }).stream$('?'));
  };
  const resultOf = async (used: ReturnType<typeof named>, name: string) =>
    JSON.stringify((await given(used, name)).find(({ type }) => type === 'postActing'));

  it('may be written for an engine without the flag u', async () => {
    expect(await resultOf(named(String.raw`^[\w-.]+$`), 'a-b.c')).toContain('taken');
    expect(await resultOf(named(String.raw`^[\w-.]+$`), 'a b')).toContain('must match pattern');
  });

  it('run on the engine that is given', async () => {
    const asked: string[] = [];
    const patterns: PatternEngine = (pattern) => ({
      test: (name) => {
        asked.push(`${pattern} ${name}`);
        return name === 'good';
      },
    });
    expect(await resultOf(named('^(a+)+$', patterns), 'good')).toContain('taken');
    expect(await resultOf(named('^(a+)+$', patterns), 'bad')).toContain('must match pattern');
    expect(asked).toEqual(['^(a+)+$ good', '^(a+)+$ bad']);
  });

  it('are distinguished, also by an engine that does not describe itself', async () => {
    const patterns: PatternEngine = (pattern) => {
      if (pattern === '^x') throw new Error('not this one');
      return { test: (name) => new RegExp(pattern, 'u').test(name) };
    };
    const two = tool({
      name: 'named',
      description: 'Takes three names.',
      input: jsonSchema(
        {
          type: 'object',
          properties: {
            x: { type: 'string', pattern: '^x' },
            a: { type: 'string', pattern: '^a' },
            b: { type: 'string', pattern: '^b' },
          },
        },
        { patterns },
      ),
      run: () => 'taken',
    });
    const model = scriptedModel([toolCall('named', { x: '?', a: 'ax', b: 'ax' })], [text('done')]);
    const reply = await createAgent({ model, tools: [two] }).call('?');
    expect(reply.toolCalls[0]?.output).toBe(
      'The arguments for named are invalid:\n- b: must match pattern "^b" (received "ax")',
    );
  });

  it('that it cannot read are passed over, with a warning in each call', async () => {
    const refuses: PatternEngine = () => {
      throw new Error('no look-ahead');
    };
    const events = await given(named('^(?=a)', refuses), 'anything');
    expect(events.filter(({ type }) => type === 'warning')).toMatchObject([
      {
        message: "tool 'named': 'input': the pattern \"^(?=a)\" is not supported: it is ignored.",
      },
    ]);
    expect(JSON.stringify(events)).toContain('taken');
  });
});

describe('T1: a schema that cannot be said as JSON Schema', () => {
  it.each([
    ['z.date()', z.object({ when: z.date() })],
    ['z.custom()', z.object({ when: z.custom<Date>() })],
    ['z.bigint()', z.object({ when: z.bigint() })],
  ])('%s is a misuse, reported with the owner and the fix', (_what, input) => {
    const make = () => tool({ name: 'book', description: 'Books.', input, run: () => 1 });
    const agent = () => createAgent({ model: scriptedModel(), use: [output(input)] });
    expect(make).toThrow(
      /^tool 'book': 'input': the 'zod' schema cannot be shown to a model: .* cannot be represented in JSON Schema\. Use what JSON can hold, .*JSON Schema\.$/,
    );
    for (const misused of [make, agent]) {
      expect(misused).toThrow(MillraceError);
      expect(misused).toThrow(/cannot be shown to a model/);
    }
  });
});

describe('T5: what is required, but not named among the properties', () => {
  const part = { type: 'object', properties: { c: {} }, required: ['d'] };
  const schema = { type: 'object', properties: { a: { type: 'string' }, part }, required: ['b'] };

  it('is not left out', () => {
    const input = { a: 'x', b: [1], part: { d: 2 } };
    expect(verdictOn(schema, { ...input, e: 3 }).value).toEqual(input);
    expect(verdictOn(schema, input, { pruneInput: false }).problems).toEqual([]);
    expect(verdictOn(schema, { part: {} }).problems).toEqual([
      'b: is required, but missing',
      'part.d: is required, but missing',
    ]);
  });

  it('is not left out if it is required beside another key', () => {
    const pair = { type: 'object', properties: { a: {} }, dependentRequired: { a: ['b'] } };
    expect(verdictOn(pair, { a: 1, b: 2, c: 3 }).value).toEqual({ a: 1, b: 2 });
  });
});

describe('I13: the input of a valid verdict', () => {
  const polluted: unknown = JSON.parse('{"n":"5","__proto__":{"polluted":1},"user":"model"}');
  const hidden = { user: 'ada' };

  it('is the input of a Standard Schema, not its output', () => {
    const schema = z.object({ n: z.string().transform(Number), user: z.string() });
    const verdict = verdictOn(schema, polluted, { hidden });
    expect(verdict.value).toEqual({ n: 5, user: 'ada' });
    expect(JSON.stringify(verdict.input)).toBe('{"n":"5","user":"ada"}');
    expect(Object.getPrototypeOf(verdict.input)).toBe(Object.prototype);
    expect(verdictOn(schema, verdict.input).value).toEqual(verdict.value);
  });

  it('is the value of a JSON Schema', () => {
    const schema = { type: 'object', properties: { n: { type: 'number' }, user: {} } };
    const verdict = verdictOn(schema, polluted, { hidden, coerceInput: true });
    expect(verdict.input).toEqual({ n: 5, user: 'ada' });
    expect(verdict.input).toBe(verdict.value);
  });

  it('is there after a Promise, too, and not if the verdict is that it is not valid', async () => {
    const schema = z.object({ n: z.string().refine((n) => Promise.resolve(n !== '')) });
    const check = (input: unknown) => firstValueFrom(validatorFor(schema).validation$(input));
    expect(await check({ n: '5' })).toEqual({ valid: true, value: { n: '5' }, input: { n: '5' } });
    expect(await check({ n: '' })).not.toHaveProperty('input');
  });
});
