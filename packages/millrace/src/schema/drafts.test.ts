import { describe, expect, it } from '@jest/globals';
import { createAgent, tool } from '../index.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';
import { jsonSchema } from './index.js';
import { verdictOn } from './validate.test-support.js';

describe('X13: drafts', () => {
  it.each([
    'https://json-schema.org/draft/2020-12/schema',
    'http://json-schema.org/draft/2020-12/schema',
    'https://json-schema.org/draft/2020-12/schema#',
    'https://json-schema.org/draft/2019-09/schema',
    'http://json-schema.org/draft/2019-09/schema#',
    'http://json-schema.org/draft-07/schema#',
    'http://json-schema.org/draft-07/schema',
    'https://json-schema.org/draft-07/schema#',
  ])('%s compiles, and is shown as it is', ($schema) => {
    const schema = { $schema, type: 'object', properties: { a: { type: 'string' } } };
    expect(verdictOn(schema, { a: 1 }).problems).toEqual(['a: must be string (received 1)']);
    expect(jsonSchema(schema).jsonSchema).toEqual(schema);
    expect(() => jsonSchema({ ...schema, required: 'a' })).toThrow(
      /the schema is not a valid JSON Schema: .*required must be array/,
    );
  });

  it('each go by the rules of their own', () => {
    const schemaOf = ($schema: string) => ({
      $schema,
      type: 'object',
      properties: { pair: { type: 'array', prefixItems: [{ type: 'string' }] } },
    });
    const { valid } = verdictOn(schemaOf('http://json-schema.org/draft/2020-12/schema'), {
      pair: [1],
    });
    expect(valid).toBe(false);
    expect(
      verdictOn(schemaOf('https://json-schema.org/draft-07/schema'), { pair: [1] }).valid,
    ).toBe(true);
  });

  it.each([
    ['2019-09', '$recursiveRef', '#'],
    ['2020-12', '$dynamicRef', '#'],
    ['2020-12', '$ref', '#'],
  ])('%s: an object beside a %s keeps its keys', (draft, keyword, target) => {
    const schema = {
      $schema: `https://json-schema.org/draft/${draft}/schema`,
      type: 'object',
      properties: {
        name: { type: 'string' },
        child: { properties: { extra: { type: 'string' } }, [keyword]: target },
      },
    };
    const input = { name: 'a', child: { name: 'b', extra: 'c', child: { name: 'd' } } };
    expect(verdictOn(schema, input).value).toEqual(input);
    expect(verdictOn(schema, { child: { name: 1 } }).valid).toBe(false);
  });

  it.each([
    [
      'https://json-schema.org/draft/2020-12/schema',
      'https://json-schema.org/draft/2020-12/schema',
    ],
    [
      'https://json-schema.org/draft/2019-09/schema',
      'https://json-schema.org/draft/2019-09/schema',
    ],
    ['http://json-schema.org/draft-07/schema#', 'http://json-schema.org/draft-07/schema#'],
  ])('X13: may refer to their meta-schema: %s', async ($schema, $ref) => {
    const input = {
      $schema,
      type: 'object',
      properties: { form: { $ref } },
      required: ['form'],
    };
    const made = tool({
      name: 'form',
      description: 'Makes a form.',
      input: jsonSchema(input),
      run: () => 'made',
    });
    const model = scriptedModel(
      [toolCall('form', { form: { type: 5 } }), toolCall('form', { form: { type: 'object' } })],
      [text('Done.')],
    );
    const { toolCalls } = await createAgent({ model, tools: [made] }).call('?');
    expect(toolCalls.map(({ isError }) => isError)).toEqual([true, false]);
    const remote = { type: 'object', properties: { a: { $ref: 'https://example.com/x.json' } } };
    const make = () =>
      tool({ name: 'a', description: 'A.', input: jsonSchema(remote), run: () => 'x' });
    expect(make).toThrow(/not a valid JSON Schema/);
  });
});
