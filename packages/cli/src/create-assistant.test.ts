import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { createAssistant, findWorkspace } from './create-assistant.js';

const directory = process.cwd();

const assistantWith = async (findDocs: () => Promise<string | undefined>) => {
  const model = scriptedModel([text('Hello.')]);
  const { agent, ...rest } = await createAssistant({ model, directory, findDocs });
  await agent.call('?');
  return { ...rest, tools: model.requests[0]?.tools?.map(({ name }) => name) };
};

describe('createAssistant', () => {
  it('has tools, the search of the docs among them', async () => {
    expect(await assistantWith(() => Promise.resolve(directory))).toEqual({
      tools: ['calculator', 'clock', 'read_file', 'search_docs'],
      warnings: [],
      sample: expect.stringMatching(/backpressure work\?$/),
    });
  });

  it('searches prose, and no reports, fixtures or installed files', async () => {
    const docs = await mkdtemp(join(tmpdir(), 'docs-'));
    const left = [
      'core.api.md',
      ...['temp', 'expected', 'dist', 'node_modules'].map((it) => `p/${it}/a.md`),
    ];
    for (const path of ['CHANGELOG.md', 'p/README.md', ...left]) {
      await mkdir(dirname(join(docs, path)), { recursive: true });
      await writeFile(join(docs, path), 'The wheel turns.');
    }
    const model = scriptedModel(
      [toolCall('search_docs', { query: 'wheel', limit: 10 })],
      [text('Done.')],
    );
    const findDocs = () => Promise.resolve(docs);
    const { agent } = await createAssistant({ model, directory, findDocs });
    await agent.call('?');
    await rm(docs, { recursive: true });
    const found = JSON.stringify(model.requests[1]?.messages);
    expect(found).toContain('Found in the 2 files searched');
    expect(found).toMatch(/CHANGELOG\.md:1.*p\/README\.md:1/);
  });

  it('leaves the search out if there are no docs, and reports it', async () => {
    expect(await assistantWith(() => Promise.resolve(undefined))).toEqual({
      tools: ['calculator', 'clock', 'read_file'],
      warnings: ['The agent cannot search the Millrace docs, as they are not installed here.'],
      sample: expect.stringMatching(/Tokyo\?$/),
    });
  });
});

describe('findWorkspace', () => {
  it.each([directory, join(directory, 'packages/cli/src'), tmpdir(), '/'])(
    'finds it from %s: above that, else above this package',
    async (start) => {
      expect(await findWorkspace(start)).toBe(directory);
    },
  );
});
