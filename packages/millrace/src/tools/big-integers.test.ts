import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { firstValueFrom, from, toArray } from 'rxjs';
import { z } from 'zod';
import { linesDialect, textTools } from '@millrace/text-tools';
import { createAgent, type Model, output, partialOutput$, tool } from '../index.js';
import { jsonSchema } from '../schema/index.js';
import { record, scriptedModel, text } from '../testing/index.js';
import { exactJson, toExactJson } from '../values/exact-json.js';

const big = '2512292042121000001';

const played = async (id: unknown, json: string, model?: (json: string) => Model) => {
  const ran: unknown[] = [];
  const remove = tool({
    name: 'remove',
    description: 'Removes a record.',
    input: jsonSchema({ type: 'object', properties: { id }, $defs: { id: { type: 'string' } } }),
    run: (input) => {
      ran.push(input);
      return 'removed';
    },
  });
  const native = scriptedModel([{ type: 'toolCall', name: 'remove', json }], [text('ok')]);
  const agent = createAgent({ model: model?.(json) ?? native, tools: [remove] });
  const events = await record(agent.stream$('?'));
  const results = events.flatMap((it) => (it.type === 'postActing' ? [it] : []));
  return {
    ran,
    results: results.map(({ result: { content, isError } }) => ({ content, isError })),
    calls: results.map(({ toolCall }) => toolCall),
    warnings: events.flatMap((it) => (it.type === 'warning' ? [it.message] : [])),
  };
};

describe('X32: an integer that JavaScript cannot hold', () => {
  it.each([
    ['a large one', `{"id":${big}}`, big],
    ['one more than 2^53', '{"id":9007199254740993}', '9007199254740993'],
    ['a negative one', '{"id":-9007199254740993}', '-9007199254740993'],
    ['one with a fraction of zeros', `{"id":${big}.000}`, big],
    ['one in powers of ten', '{"id":2.512292042121000001e18}', big],
    ['one in powers of ten without a point', '{"id":2512292042121000001e0}', big],
    [
      'one that prints as itself but is another',
      '{"id":1234567890123456800}',
      '1234567890123456800',
    ],
    ['one that needs a repair', `{'id': ${big},}`, big],
    ['one beside a key that is there twice', `{"id":${big},"id":${big}}`, big],
    ['one in an array', `{"id":[1,${big}]}`, big],
    ['one in an object', `{"id":{"of":{"it":${big}}}}`, big],
    [
      'one after strings with quotes and digits',
      `{"a":"\\"1234567890123456789\\\\","id":${big}}`,
      big,
    ],
    ['one of 400 digits would be infinite', `{"id":-${'1'.repeat(300)}}`, '1'.repeat(300)],
  ])(
    'runs nothing, and both the model and the program learn of it: %s',
    async (_, json, digits) => {
      const { ran, results, warnings, calls } = await played({ type: 'integer' }, json);
      expect(ran).toEqual([]);
      expect(results).toMatchObject([{ isError: true }]);
      expect(JSON.stringify(results)).toContain(digits);
      expect(JSON.stringify(results)).toContain('Use an integer from');
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toContain(digits);
      // What the model wrote is kept as it was.
      expect(calls).toMatchObject([{ input: {}, invalidInput: json }]);
    },
  );

  it.each([
    ['a string', { type: 'string' }],
    ['either', { type: ['integer', 'string'] }],
    ['a union', { anyOf: [{ type: 'integer' }, { type: 'string' }] }],
    ['a reference', { $ref: '#/$defs/id' }],
    ['a union of references', { oneOf: [{ type: 'null' }, { $ref: '#/$defs/id' }] }],
    ['anything', {}],
    ['values of an enum', { enum: [1, 'a'] }],
  ])('is to be passed as a string, if the schema admits one: %s', async (_, id) => {
    const { ran, results, warnings } = await played(id, `{"id":${big}}`);
    expect(ran).toEqual([]);
    expect(JSON.stringify(results)).toContain(`Pass it as a string: \\"${big}\\"`);
    expect(warnings).toEqual([]);
  });

  it('is refused alike in text protocols', async () => {
    const { ran, results, warnings } = await played({ type: 'integer' }, `{"id":${big}}`, (json) =>
      textTools(
        scriptedModel([text(`Action: remove\nAction Input: ${json}`)], [text('Final Answer: ok')]),
        linesDialect(),
      ),
    );
    expect(ran).toEqual([]);
    expect(JSON.stringify(results)).toContain(big);
    expect(warnings).toHaveLength(1);
  });

  it('is refused in arguments that a model gives as a value', async () => {
    const { ran, results } = await played({ type: 'integer' }, '', () =>
      scriptedModel(
        [{ type: 'toolCall', name: 'remove', input: { id: BigInt(big) } }],
        [text('ok')],
      ),
    );
    expect(ran).toEqual([]);
    expect(JSON.stringify(results)).toContain(big);
  });

  it('is corrected in structured output, and missing from its previews', async () => {
    const schema = z.object({ id: z.union([z.number(), z.string()]), n: z.number() });
    const said = `{"n":1,"id":${big}}`;
    const model = scriptedModel([text(said)], [text(`{"n":1,"id":"${big}"}`)]);
    const agent = createAgent({ model, use: [output(schema)] });
    const events = await record(agent.stream$('?'));
    const last = events.at(-1);
    expect(last).toMatchObject({ type: 'postCall', reply: { output: { id: big, n: 1 } } });
    const previews = await firstValueFrom(
      partialOutput$(from(events), { everyMs: 0 }).pipe(toArray()),
    );
    expect(previews).toContainEqual({ n: 1 });
    expect(JSON.stringify(model.requests[1]?.messages)).toContain(`Pass it as a string`);
    const strict = createAgent({
      model: scriptedModel([text(said)], [text('{"n":1}')]),
      use: [output(z.object({ id: z.number().optional(), n: z.number() }))],
    });
    const warned = await record(strict.stream$('?'));
    expect(warned.filter(({ type }) => type === 'warning')).toHaveLength(1);
  });

  it('is exact wherever it stands: a property', () => {
    const integer = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n });
    const written = fc.oneof(
      integer.map((it) => ({ it, token: String(it) })),
      integer.map((it) => ({ it, token: `${it}.0` })),
      fc
        .tuple(integer, fc.nat(20))
        .map(([it, zeros]) => ({ it: it * 10n ** BigInt(zeros), token: `${it}e${zeros}` })),
    );
    const around = fc.constantFrom(
      (token: string) => token,
      (token: string) => `{"a":"\\\\\\"${'7'.repeat(30)}","b":[${token}]}`,
      (token: string) => `[${token},"\\ue000123", "${token}"]`,
    );
    const leaf = (value: unknown): unknown => {
      if (Array.isArray(value)) return leaf(value[0]);
      return typeof value === 'object' && value !== null && 'b' in value ? leaf(value.b) : value;
    };
    fc.assert(
      fc.property(written, around, ({ it, token }, within) => {
        const json = within(token);
        const read = leaf(exactJson(json));
        const isShort = token.includes('e') && typeof read === 'number';
        if (isShort) expect(BigInt(Number(token))).toBe(BigInt(read));
        else expect(BigInt(String(typeof read === 'number' ? BigInt(read) : read))).toBe(it);
        expect(exactJson(toExactJson(exactJson(json)))).toEqual(exactJson(json));
      }),
    );
  });

  it('is found at every offset, with each number of digits', () => {
    for (const digits of [16, 17, 18, 19, 20, 24]) {
      const integer = 10n ** BigInt(digits) - 7n;
      for (let offset = 0; offset < 32; offset += 1)
        expect(exactJson(`${' '.repeat(offset)}${integer} `)).toBe(integer);
    }
  });

  it('other JSON is read as by JSON.parse', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.stringify(value);
        const read = exactJson(json);
        if (!JSON.stringify(JSON.parse(json)).match(/\d{16}/))
          expect(read).toEqual(JSON.parse(json));
      }),
    );
    for (const json of [
      '',
      '{',
      '"\\ue0001"',
      '[0.12345678901234567]',
      '{"__proto__":1}',
      '6.02214076e23',
    ]) {
      const plain = (): unknown => {
        try {
          return JSON.parse(json);
        } catch {
          return undefined;
        }
      };
      expect(exactJson(json)).toEqual(plain());
    }
  });
});
