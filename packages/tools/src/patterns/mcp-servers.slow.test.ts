import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type JsonSchema, tool, type Tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { verdictOn } from '../run-tool.test-support.js';
import { linearPatterns } from './index.js';
import { samplesOf } from './samples-of.test-support.js';

const { resolve } = createRequire(import.meta.url);

/** A bound for a server that does not start; otherwise nobody waits for it. */
const patience = 60_000;

describe.each([
  ['everything', ['stdio'], ['echo', 'get-sum', 'get-structured-content']],
  ['filesystem', [tmpdir()], ['read_text_file', 'edit_file', 'read_multiple_files']],
])('X13: the schemas of the MCP server %s', (server, args, names) => {
  const client = new Client({ name: 'millrace', version: '0.0.0' }, { capabilities: {} });
  const schemas = new Map<string, JsonSchema>();

  beforeAll(async () => {
    const path = resolve(`@modelcontextprotocol/server-${server}/dist/index.js`);
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [path, ...args],
        stderr: 'ignore',
      }),
    );
    const { tools } = await client.listTools();
    for (const { name, inputSchema } of tools) schemas.set(name, inputSchema);
  }, patience);

  afterAll(() => client.close(), patience);

  const toolOf = (name: string, input: JsonSchema): Tool =>
    tool({
      name,
      description: name,
      input: jsonSchema(input, { patterns: linearPatterns }),
      run: () => 'ran',
    });

  it('X13: are those of its tools', () => {
    expect([...schemas.keys()]).toEqual(expect.arrayContaining(names));
    expect(schemas.size).toBeGreaterThan(10);
  });

  it('X13: compile all, are shown as they are, and leave nothing unchecked', () => {
    for (const [name, schema] of schemas) {
      const { inputSchema, warnings } = toolOf(name, schema);
      expect(inputSchema).toEqual(schema);
      expect(warnings).toBeUndefined();
    }
  });

  it('X13: take what fits', async () => {
    for (const [name, schema] of schemas) {
      for (const input of samplesOf(schema).valid) {
        const verdict = await verdictOn(toolOf(name, schema), input);
        expect({ name, input, verdict }).toEqual({
          name,
          input,
          verdict: { valid: true, value: input, input },
        });
      }
    }
  });

  it('X13: refuse what does not', async () => {
    for (const [name, schema] of schemas) {
      const { invalid } = samplesOf(schema);
      expect(invalid.length).toBeGreaterThan(2);
      for (const input of invalid) {
        const { valid } = await verdictOn(toolOf(name, schema), input);
        expect({ name, input, valid }).toEqual({ name, input, valid: false });
      }
    }
  });
});
