import { describe, expect, it } from '@jest/globals';
import { scriptedModel, text } from '@millrace/core/testing';
import { createAssistant } from './create-assistant.js';

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

  it('leaves the search out where there are no docs, and says so', async () => {
    expect(await assistantWith(() => Promise.resolve(undefined))).toEqual({
      tools: ['calculator', 'clock', 'read_file'],
      warnings: ['The docs of Millrace are not here, so the agent cannot search them.'],
      sample: expect.stringMatching(/Tokyo\?$/),
    });
  });
});
