import { describe, expect, it } from '@jest/globals';
import type { Message, ModelRequest, ToolDeclaration } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import fc from 'fast-check';
import { firstValueFrom } from 'rxjs';
import {
  answerOf,
  callsOf,
  chunksOf,
  declare,
  requestOf,
  shopTools,
  tools,
  used,
  user,
} from './ask.test-support.js';

const words = fc.constantFrom(
  ...'what is the time in Tokyo and then 2 + 3 * 4 ( ) % of it result show README.md convert 5 miles to km'.split(
    ' ',
  ),
  ...'__proto__ constructor , ? . ; " “ ” ` : search docs not if 1,000 -7 ORD-1 a@b.example USD red hello \n'.split(
    ' ',
  ),
);

const question = fc.oneof(
  fc.string(),
  fc.string({ unit: 'grapheme' }),
  fc.array(words, { maxLength: 25 }).map((list) => list.join(' ')),
);

const name = fc.constantFrom('query', 'path', 'expression', 'to', 'text', 'x', 'constructor');

const toolOf = (schema: fc.Arbitrary<unknown>): fc.Arbitrary<ToolDeclaration> =>
  fc
    .record({
      name: fc.stringMatching(/^[\w.-]{1,12}$/u),
      description: fc.oneof(fc.string(), fc.constantFrom('Searches docs.', 'Shows the time.')),
      properties: fc.dictionary(name, schema, { maxKeys: 4 }),
      required: fc.uniqueArray(name, { maxLength: 3 }),
    })
    .map(({ name, description, properties, required }) =>
      declare(name, description, properties, required),
    );

const optional = { requiredKeys: [] };

/** Schemas as people write them. */
const validSchema = fc.oneof(
  fc.record(
    {
      type: fc.constant('string'),
      minLength: fc.nat(5),
      maxLength: fc.integer({ min: 5, max: 40 }),
      pattern: fc.constantFrom('^ORD-\\d+$', '^[a-z]+$', '^\\w{2,}', 'x'),
      examples: fc.constantFrom(['2 + 2'], ['a.md'], ['ORD-1'], ['USD', 'EUR']),
      format: fc.constantFrom('uri', 'email', 'date', 'uuid'),
      description: fc.string(),
    },
    optional,
  ),
  fc.record(
    {
      type: fc.constantFrom('number', 'integer'),
      minimum: fc.integer({ min: -5, max: 5 }),
      exclusiveMaximum: fc.integer({ min: 6, max: 2_000 }),
      multipleOf: fc.constantFrom(1, 2, 0.5),
      examples: fc.array(fc.integer({ min: -20, max: 20 }), { maxLength: 3 }),
    },
    { requiredKeys: ['type'] },
  ),
  fc.record({ type: fc.constant('boolean') }),
  fc.record({ enum: fc.uniqueArray(fc.constantFrom('red', 'of it', 5, 'USD'), { minLength: 1 }) }),
  fc.record({ const: fc.constantFrom('red', 5) }),
  fc.record(
    {
      type: fc.constant('array'),
      items: fc.record({ type: fc.constantFrom('string', 'number', 'object') }),
      minItems: fc.nat(3),
      maxItems: fc.integer({ min: 3, max: 5 }),
      uniqueItems: fc.boolean(),
    },
    { requiredKeys: ['type', 'items'] },
  ),
  fc.record({ type: fc.constant('object') }),
);

const anySchema = fc.oneof(
  validSchema,
  fc.record(
    {
      type: fc.constantFrom('string', 'number', ['null', 'string'], 7, null),
      enum: fc.anything(),
      examples: fc.anything(),
      pattern: fc.oneof(fc.string(), fc.integer()),
      anyOf: fc.array(validSchema, { maxLength: 2 }),
      default: fc.anything(),
    },
    optional,
  ),
  fc.anything(),
);

const toolsOf = (schema: fc.Arbitrary<unknown>): fc.Arbitrary<readonly ToolDeclaration[]> =>
  fc.oneof(
    fc.constant(tools),
    fc.constant(shopTools),
    fc.uniqueArray(toolOf(schema), { maxLength: 5, selector: (it) => it.name }),
  );

type ToolChoice = NonNullable<ModelRequest['toolChoice']>;
const toolChoice = fc.constantFrom<ToolChoice>('auto', 'none', 'required', { name: 'clock' });

describe('for any question', () => {
  it('answers or calls tools, the same each time, and ends with one finish', () => {
    fc.assert(
      fc.property(question, toolsOf(anySchema), toolChoice, (text, given, choice) => {
        const request = requestOf(text, { tools: given, toolChoice: choice });
        const chunks = chunksOf(request);
        expect(chunks.at(-1)).toEqual({ type: 'finish', finish: 'stop' });
        expect(chunks.filter(({ type }) => type === 'finish')).toHaveLength(1);
        expect(chunks.some(({ type }) => type === 'text' || type === 'toolCall')).toBe(true);
        expect(chunksOf(request)).toEqual(chunks);
      }),
    );
  });

  it('calls declared tools only, with arguments that their schemas allow', async () => {
    let count = 0;
    const required = fc.constant<ToolChoice>('required');
    const choice = fc.oneof(toolChoice, { arbitrary: required, weight: 4 });
    // Required parameters and known words, because most tools should be called.
    const sentence = fc.array(words, { maxLength: 25 }).map((list) => `show ${list.join(' ')}`);
    const declared = fc
      .dictionary(name, validSchema, { minKeys: 1, maxKeys: 2 })
      .map((properties) => [declare('show', 'Shows everything.', properties)]);
    const given = fc.oneof(toolsOf(validSchema), { arbitrary: declared, weight: 8 });
    const property = fc.asyncProperty(sentence, given, choice, async (text, tools, toolChoice) => {
      for (const { name, input } of callsOf(requestOf(text, { tools, toolChoice }))) {
        count += 1;
        expect(toolChoice).not.toBe('none');
        const [tool, ...others] = tools.filter((it) => it.name === name);
        expect(others).toEqual([]);
        const { validation$ } = jsonSchema({ ...tool?.inputSchema, type: 'object' });
        expect(await firstValueFrom(validation$(input))).toMatchObject({ valid: true });
      }
    });
    await fc.assert(property, { numRuns: 1_000 });
    expect(count).toBeGreaterThan(0);
  });

  it('repeats no call in a turn, and comes to an answer', () => {
    const said = fc.oneof(fc.string(), fc.constantFrom('42', '{"a": 1}', '1. a.md\nThe time.'));
    const result = fc.oneof(fc.record({ output: said }), fc.record({ error: said }));
    const results = fc.array(result, { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(question, toolsOf(anySchema), results, (text, given, outcomes) => {
        let messages: readonly Message[] = [user(text)];
        const made = new Set<string>();
        for (let round = 0; round < 40; round += 1) {
          const request = requestOf(messages, { tools: given });
          const calls = callsOf(request);
          if (calls.length === 0) return expect(answerOf(request)).not.toBe('');
          for (const { name, input } of calls) {
            const key = `${name} ${JSON.stringify(input)}`;
            expect(made).not.toContain(key);
            made.add(key);
          }
          const withResults = calls.map((call, at) => ({
            ...call,
            ...outcomes[(round + at) % outcomes.length],
          }));
          messages = [...messages, ...used(...withResults)];
        }
        throw new Error('There was no answer.');
      }),
    );
  });
});

// The time of the process, not of a clock: others may keep the machine busy.
const secondsFor = (task: () => unknown): number => {
  const start = process.cpuUsage().user;
  task();
  return (process.cpuUsage().user - start) / 1_000_000;
};

describe('hostile input', () => {
  const million = (part: string): string => part.repeat(1_000_000 / part.length);
  const parts = [
    '(',
    'a ',
    '2+',
    'Tokyo and ',
    'a.md, ',
    '{[(',
    '`',
    '“',
    "'",
    'a. ',
    '1',
    'a@',
    'aing',
    ' ',
  ];

  it.each(parts)('of a million characters takes no longer than it may: %j', (part) => {
    expect(secondsFor(() => chunksOf(requestOf(million(part))))).toBeLessThan(5);
  });

  it.each(parts)('in a result takes no longer than it may: %j', (part) => {
    const question = user('Search the docs, then read it. What time is it?');
    const results = ['search_docs', 'read_file', 'clock'].map((name) => ({
      name,
      input: { query: 'a', path: 'a.md' },
      output: million(part),
    }));
    const messages = [question, ...used(...results)];
    expect(secondsFor(() => answerOf(requestOf(messages, { toolChoice: 'none' })))).toBeLessThan(5);
  });

  it('in a declaration takes no longer than it may', () => {
    const patterns = [
      '^(a+)+$',
      '(?:a|a)*b',
      '^(\\w+\\s?)*$',
      'a*a*a*a*b',
      '(?=a+)a',
      '(a)\\1',
      'a{9999999}',
    ];
    const given = Array.from({ length: 100 }, (_, index) => {
      const schema = (pattern: string) => ({
        type: 'string',
        pattern,
        description: million('word '),
        examples: [million('a')],
      });
      const properties = Object.fromEntries(patterns.map((it, at) => [`p${at}`, schema(it)]));
      const choices = Array.from({ length: 2_000 }, (_, choice) => `choice ${choice}`);
      return declare(`tool_${index}`, million('a b '), {
        ...properties,
        choice: { enum: choices },
      });
    });
    const request = requestOf(`${'a'.repeat(5_000)} ${'a choice '.repeat(300)}!`, { tools: given });
    expect(secondsFor(() => chunksOf(request))).toBeLessThan(10);
  });
});
