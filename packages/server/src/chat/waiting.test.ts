import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, suspend, tool } from '@millrace/core';
import { jsonSchema } from '@millrace/core/schema';
import { scriptedModel, text, toolCall } from '@millrace/core/testing';
import { openFiles } from '@millrace/store';
import { lastAssistantMessageIsCompleteWithToolCalls } from 'ai';
import { chatOf } from './real-client.test-support.js';
import { answerIn } from '../read-as-client.test-support.js';
import { chatServer, type ChatServer, type ChatServerOptions } from './index.js';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const opened = (server: ChatServer): ChatServer => {
  ends.push(() => server.close({ timeoutMs: 0 }));
  return server;
};

const files = (): ChatServerOptions => {
  const directory = mkdtempSync(join(tmpdir(), 'chat-'));
  ends.push(() => {
    rmSync(directory, { recursive: true, force: true });
  });
  return { store: openFiles(directory) };
};

const place = tool({
  name: 'place',
  description: 'Asks the browser where the user is.',
  input: jsonSchema({ type: 'object', properties: { precise: { type: 'boolean' } } }),
  run: ({ precise }) => suspend({ precise }),
});

describe('a tool of the client', () => {
  it.each([
    ['this process', () => ({})],
    ['files', files],
  ])('runs once, with calls in %s', async (_, options) => {
    const model = scriptedModel(
      [text('I look. '), toolCall('place', { precise: true }, 'p')],
      [text('You are in Oslo.')],
    );
    const server = opened(chatServer(createAgent({ model, tools: [place] }), options()));
    const runs: unknown[] = [];
    const chat = chatOf(server, 'c', {
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall: ({ toolCall: { toolCallId, input } }) => {
        runs.push(input);
        void chat.addToolOutput({ tool: 'place', toolCallId, output: 'Oslo' });
      },
    });
    await chat.sendMessage({ text: 'Where am I?' });
    expect(runs).toEqual([{ precise: true }]);
    expect(chat.lastMessage && answerIn(chat.lastMessage)).toBe('You are in Oslo.');
  });
});
