import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, requireApproval, suspend, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { openFiles } from '@millrace/store';
import { lastAssistantMessageIsCompleteWithToolCalls } from 'ai';
import { agUi } from '../ag-ui/index.js';
import { approvalQueue } from '../approvals/index.js';
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

const pay = tool({ name: 'pay', description: 'Pays.', run: () => 'Paid.' });

/** A server whose first call waits: for its client, or for an approval. */
const waiting = async (what: 'client' | 'approval', options: ChatServerOptions = {}) => {
  const approvals = approvalQueue({ key: 'a key of at least thirty-two characters' });
  const model = scriptedModel(
    [toolCall(what === 'client' ? 'place' : 'pay', {}, 'w')],
    [text('It is noon.')],
    [text('Later.')],
  );
  const tools = [place, requireApproval(pay, approvals.approve)];
  const agent = createAgent({ name: 'helper', model, tools });
  const server = opened(chatServer(agent, { approvals, ...options }));
  const chat = chatOf(server, 'c');
  await chat.sendMessage({ text: 'Do it.' });
  const post = (path: string) =>
    server.respond(
      new Request(`http://localhost/api/chat/c/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      }),
    );
  return { chat, model, post };
};

const last = ({ lastMessage }: ReturnType<typeof chatOf>): string =>
  lastMessage?.role === 'assistant' ? answerIn(lastMessage) : '';

describe.each(['client', 'approval'] as const)('T13: what waits for the %s', (what) => {
  it('is cancelled by a message, which is answered', async () => {
    const { chat, model } = await waiting(what);
    await chat.sendMessage({ text: 'Never mind. What time is it?' });
    expect([last(chat), chat.error]).toEqual(['It is noon.', undefined]);
    const results = model.requests[1]?.messages.flatMap((message) =>
      message.role === 'tool' ? message.content : [],
    );
    expect(results).toMatchObject([{ isError: true }]);
  });

  it('is cancelled by a stop, and the chat continues', async () => {
    const { chat, post } = await waiting(what);
    expect(await (await post('stop')).json()).toEqual({ stopped: 1 });
    expect(await (await post('stop')).json()).toEqual({ stopped: 0 });
    await chat.sendMessage({ text: 'What time is it?' });
    expect([last(chat), chat.error]).toEqual(['It is noon.', undefined]);
  });

  it('stays if the server refuses the message', async () => {
    const { chat, model } = await waiting(what, { onSuspended: 'refuse' });
    await chat.sendMessage({ text: 'What time is it?' });
    expect([chat.error === undefined, model.requests.length]).toEqual([false, 1]);
  });
});

describe('T13: an approval that waits in AG-UI', () => {
  it('is cancelled by a question that comes with its cancellation', async () => {
    const approvals = approvalQueue({ key: 'a key of at least thirty-two characters' });
    const model = scriptedModel([toolCall('pay', {}, 'w')], [text('It is noon.')]);
    const tools = [requireApproval(pay, approvals.approve)];
    const agent = createAgent({ name: 'helper', model, tools });
    const server = opened(chatServer(agent, { approvals, protocols: [agUi()] }));
    const run = async (runId: string, messages: readonly object[], more: object = {}) => {
      const given = { tools: [], context: [], state: {}, forwardedProps: {}, ...more };
      const response = await server.respond(
        new Request('http://localhost/api/ag-ui', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ threadId: 't', runId, messages, ...given }),
        }),
      );
      return response.text();
    };
    const first = { id: 'u1', role: 'user', content: 'Do it.' };
    const asked = await run('r1', [first]);
    const [, messageId = ''] = /"parentMessageId":"([^"]+)"/u.exec(asked) ?? [];
    const [, interruptId = ''] = /"interrupts":\[\{"id":"([^"]+)"/u.exec(asked) ?? [];
    expect([messageId, interruptId]).not.toContain('');
    const toolCalls = [
      { id: `${messageId}/w`, type: 'function', function: { name: 'pay', arguments: '{}' } },
    ];
    const shown = [first, { id: messageId, role: 'assistant', toolCalls }];
    const question = { id: 'u2', role: 'user', content: 'What time is it?' };
    const resume = [{ interruptId, status: 'cancelled' }];
    expect(await run('r2', [...shown, question], { resume })).toContain('It is noon.');
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: 'user' });
  });
});
