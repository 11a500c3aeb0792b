import { describe, expect, it } from '@jest/globals';
import type { Tool } from 'millrace';
import { toolContract } from 'millrace/testing';
import { calculator, clock, readFile, searchDocuments } from './index.js';
import { runTool, verdictOn } from './run-tool.test-support.js';

interface Case {
  readonly name: string;
  readonly create: () => Tool;
  readonly valid: readonly Readonly<Record<string, unknown>>[];
  readonly invalid: readonly unknown[];
}

const documents = [{ path: 'mill.md', text: '# Mill\nThe wheel turns.' }];

const tools: readonly Case[] = [
  {
    name: 'calculator',
    create: calculator,
    valid: [{ expression: '1 + 1' }],
    invalid: [{}, { expression: '' }, { expression: 2 }, { expression: '1'.repeat(501) }],
  },
  {
    name: 'clock',
    create: clock,
    valid: [{}, { place: 'Tokyo' }],
    invalid: [{ place: 5 }, { place: 'x'.repeat(101) }],
  },
  {
    name: 'search_docs',
    create: () => searchDocuments({ load: () => documents }),
    valid: [{ query: 'wheel' }, { query: 'wheel', limit: 1 }],
    invalid: [{}, { query: '' }, { query: 'wheel', limit: 0 }, { query: 'wheel', limit: 1.5 }],
  },
  {
    name: 'read_file',
    create: readFile,
    valid: [{ path: 'package.json' }, { path: 'package.json', fromLine: 1, lines: 2 }],
    invalid: [{}, { path: '' }, { path: 'a', fromLine: 0 }, { path: 'a', lines: '2' }],
  },
];

describe.each(tools)('$name', ({ name, create, valid, invalid }) => {
  it('has its name, and describes its purpose to a model', () => {
    const tool = create();
    expect(tool.name).toBe(name);
    expect(tool.description.length).toBeGreaterThan(50);
    expect(tool.exclusive).toBe(false);
  });

  it('describes every parameter, and gives valid examples', async () => {
    const tool = create();
    const properties = tool.inputSchema['properties'] as Record<
      string,
      { description?: string; examples?: readonly unknown[] }
    >;
    for (const [parameter, { description, examples = [] }] of Object.entries(properties)) {
      expect(description).toMatch(/\.$/u);
      for (const example of examples) {
        await expect(verdictOn(tool, { [parameter]: example })).resolves.toMatchObject({
          valid: true,
        });
      }
    }
  });

  it.each(valid)('takes %j, twice', async (input) => {
    const tool = create();
    const { text } = await runTool(tool, input);
    expect(text.length).toBeGreaterThan(0);
    expect((await runTool(tool, input)).output.isError).toBe(false);
  });

  for (const { name: rule, run } of toolContract(create, { valid, invalid })) it(rule, run);

  it('T5, T17: prunes what it does not know', async () => {
    const input: unknown = JSON.parse(
      `{ "__proto__": { "polluted": 1 }, "extra": 1, ${JSON.stringify(valid.at(-1)).slice(1)}`,
    );
    await expect(verdictOn(create(), input)).resolves.toEqual({
      valid: true,
      value: valid.at(-1),
      input: valid.at(-1),
    });
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
  });
});

describe('the examples of the calculator', () => {
  it('can all be computed', async () => {
    const tool = calculator();
    const { expression } = tool.inputSchema['properties'] as Record<string, { examples: string[] }>;
    for (const example of expression?.examples ?? []) {
      await expect(runTool(tool, { expression: example })).resolves.toBeDefined();
    }
  });
});
