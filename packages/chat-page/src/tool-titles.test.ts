import { describe, expect, it } from '@jest/globals';
import { type Agent, createAgent, tool, toolGroup } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { scriptedModel } from 'millrace/testing';
import { chatServer, type ChatServerOptions } from '@millrace/server/chat';
import { chatPage } from './index.js';

const run = (): string => 'Done.';
const titlesOf = async (tools: Agent['tools'], options: ChatServerOptions = {}) => {
  const server = chatServer(createAgent({ model: scriptedModel(), tools }), {
    protocols: [chatPage()],
    ...options,
  });
  const response = await server.respond(new Request('http://localhost/api/tool-titles'));
  await server.close();
  return { status: response.status, body: (await response.json()) as unknown };
};

describe('the titles of tools', () => {
  const input = jsonSchema({
    type: 'object',
    title: 'Send a letter',
    description: 'What it does.',
    required: ['to'],
    properties: {
      to: { type: 'string', title: 'Recipient', description: 'Who gets it.', pattern: '^secret$' },
      secret: { type: 'string', description: 'secret' },
      lines: { type: 'array', items: { type: 'object', properties: { sum: { title: 'Sum' } } } },
      speed: { oneOf: [{ const: 'fast', title: 'At once' }, { const: 'secret' }] },
      state: { enum: ['secret'], default: 'secret' },
    },
  });

  it('are those that authors have written for people, and nothing else of a schema', async () => {
    const output = jsonSchema({
      type: 'object',
      properties: { id: { title: 'Receipt' }, key: { const: 'secret' } },
    });
    const send = tool({ name: 'send', description: 'secret', input, output, run: () => ({}) });
    const { body } = await titlesOf([send]);
    expect(body).toEqual({
      tools: {
        send: {
          input: {
            ...{ title: 'Send a letter', description: 'What it does.' },
            properties: {
              to: { title: 'Recipient', description: 'Who gets it.' },
              lines: { items: { properties: { sum: { title: 'Sum' } } } },
              speed: { oneOf: [{ const: 'fast', title: 'At once' }] },
            },
          },
          output: { properties: { id: { title: 'Receipt' } } },
        },
      },
    });
    expect(JSON.stringify(body)).not.toContain('secret');
  });

  it('include those of groups, and leave out tools without any', async () => {
    const plain = tool({ name: 'plain', description: 'Plain.', run });
    const send = tool({ name: 'send', description: 'Sends.', input, run });
    const { body } = await titlesOf([
      plain,
      toolGroup({ name: 'letters', description: 'Letters.', tools: [send] }),
    ]);
    expect(body).toMatchObject({ tools: { send: { input: { title: 'Send a letter' } } } });
    expect(JSON.stringify(body)).not.toContain('plain');
  });

  it('need a user if the server has users', async () => {
    expect((await titlesOf([], { user: () => null })).status).toBe(401);
  });
});
