import { describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';

const readme = readFileSync(join(import.meta.dirname, '..', 'README.md'), 'utf8');
const [, firstAgent = ''] = /^```ts\n(.*?)^```/ms.exec(readme) ?? [];
/** Its tool, with a JSON Schema. */
const weather = `
  import { createAgent, tool } from 'millrace';
  import { jsonSchema } from 'millrace/schema';
  const properties = { city: { type: 'string' } };
  const input = jsonSchema({ type: 'object', properties, required: ['city'] });
  const run = ({ city }) => \`Snow in \${city}, -3 °C.\`;
  const weather = tool({ name: 'weather', description: 'Returns the weather.', input, run });`;

/** What a module prints, with and without the flag. */
const printed = async (source: string): Promise<readonly [string, string]> => {
  const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  const code = ts.transpile(source, options);
  const [one, other] = await Promise.all(
    [[], ['--disallow-code-generation-from-strings']].map((flags) =>
      promisify(execFile)(process.execPath, [...flags, '--input-type=module', '--eval', code], {
        cwd: import.meta.dirname,
        timeout: 100_000,
      }),
    ),
  );
  expect(one?.stderr).toBe('');
  expect(other?.stderr).toBe('');
  return [one?.stdout ?? '', other?.stdout ?? ''];
};

/** Calls the tool, as a model does that gives these arguments. */
const callWith = (input: unknown): string => `${weather}
  import { scriptedModel, text as said, toolCall } from 'millrace/testing';
  const model = scriptedModel([toolCall('weather', ${JSON.stringify(input)})], [said('Done.')]);
  const { toolCalls } = await createAgent({ model, tools: [weather] }).call('?');
  console.log(toolCalls[0]?.isError, toolCalls[0]?.output);`;

describe('X20: if no code is compiled', () => {
  it('the first agent of the README answers as everywhere', async () => {
    const [everywhere, here] = await printed(firstAgent);
    expect(here).toContain('Snow in Oslo, -3 °C.');
    expect(here).toBe(everywhere);
  });

  it('its tool gets arguments that fit, and the model hears of others in the same words', async () => {
    const [fits, bad] = await Promise.all([
      printed(callWith({ city: 'Bergen', z: 1 })),
      printed(callWith({ city: 5 })),
    ]);
    expect(fits[1]).toBe('false Snow in Bergen, -3 °C.\n');
    expect(bad[1]).toBe(
      'true The arguments for weather are invalid:\n- city: must be string (received 5)\n',
    );
    for (const [everywhere, here] of [fits, bad]) expect(here).toBe(everywhere);
  });

  it('an agent whose tools have no JSON Schema loads nothing that checks one', async () => {
    const [loaded] = await printed(`
      import { createAgent, tool, toolGroup } from 'millrace';
      import { scriptedModel } from 'millrace/testing';
      import { createRequire } from 'node:module';
      const named = (name) => tool({ name, description: 'x', run: () => 1 });
      const group = toolGroup({ name: 'group', description: 'x', tools: [named('b')] });
      createAgent({ model: scriptedModel(), tools: [named('a'), group] });
      const { cache } = createRequire(import.meta.url);
      console.log(Object.keys(cache).filter((file) => file.includes('/ajv/')).length);`);
    expect(loaded).toBe('0\n');
  });

  it('X13: a schema that cannot be used is reported when its tool is called', async () => {
    const [everywhere, here] = await printed(`
      import { createAgent, tool } from 'millrace';
      import { jsonSchema } from 'millrace/schema';
      import { scriptedModel, text, toolCall } from 'millrace/testing';
      const input = { type: 'object', properties: { a: { type: 5 } } };
      const make = () =>
        tool({ name: 'broken', description: 'x', input: jsonSchema(input), run: () => 1 });
      try {
        const model = scriptedModel([toolCall('broken', { a: 1 })], [text('Done.')]);
        for await (const event of createAgent({ model, tools: [make()] }).stream('?')) {
          if (event.type === 'preActing') console.log('called');
        }
      } catch ({ message }) {
        console.log('refused', message);
      }`);
    const why = 'the schema is not a valid JSON Schema: data/properties/a/type must be';
    expect(everywhere).toContain(`refused jsonSchema(): ${why}`);
    expect(here).toContain(`called\nrefused The tool 'broken': jsonSchema(): ${why}`);
  });
});
