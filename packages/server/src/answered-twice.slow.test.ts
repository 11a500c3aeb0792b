import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, requireApproval, suspend, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import { firstValueFrom } from 'rxjs';
import { agUi } from './ag-ui/index.js';
import { queueOf } from './approvals/asking.test-support.js';
import { chatServer, type ChatServer } from './chat/index.js';
import { openAi } from './openai/index.js';

const servers: ChatServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close({ timeoutMs: 0 }))));

/** A server whose agent pays after an approval, or asks the client. */
const serving = (kind: 'approval' | 'result') => {
  const approvals = queueOf();
  const paid: unknown[] = [];
  const input = jsonSchema({ type: 'object', properties: { amount: { type: 'number' } } });
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input,
    run: (given) => {
      paid.push(given);
      return 'Paid.';
    },
  });
  const where = tool({ name: 'where', description: 'Asks.', run: () => suspend({}) });
  const call =
    kind === 'approval' ? toolCall('pay', { amount: 5 }, 'p') : toolCall('where', {}, 'p');
  const model = scriptedModel([call, finish()], [text('Done.')]);
  const tools = [requireApproval(pay, approvals.approve), where];
  const agent = createAgent({ name: 'helper', model, tools });
  const server = chatServer(agent, { approvals, protocols: [agUi(), openAi()] });
  servers.push(server);
  const send = async (path: string, body: object) => {
    const response = await server.respond(
      new Request(`http://localhost${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
    return { status: response.status, body: await response.text() };
  };
  return { send, paid, model, approvals };
};

type Serving = ReturnType<typeof serving>;
type Answer = Awaited<ReturnType<Serving['send']>>;

/** Asks, then answers the one question of the agent with each of these values in one request. */
type Client = (server: Serving, ...values: readonly (boolean | string)[]) => Promise<Answer>;

const question = { id: 'q', role: 'user', parts: [{ type: 'text', text: 'Do it.' }] };
const agUiRun = (runId: string, more: object) => ({
  ...{ threadId: 'a', runId, tools: [], context: [], state: {}, forwardedProps: {} },
  ...more,
});
const asksAgUi = { id: 'q', role: 'user', content: 'Do it.' };
const found = ({ body }: Answer, pattern: RegExp): string => pattern.exec(body)?.[1] ?? '';

const clients: Readonly<Record<string, readonly ['approval' | 'result', Client]>> = {
  'the AI SDK, an approval': [
    'approval',
    async ({ send }, ...values) => {
      const asked = await send('/api/chat', { id: 'a', messages: [question] });
      const id = found(asked, /"approvalId":"([^"]+)"/u);
      const parts = values.map((approved) => ({
        state: 'approval-responded',
        approval: { id, approved },
      }));
      return send('/api/chat', { id: 'a', messages: [{ id: 'm', role: 'assistant', parts }] });
    },
  ],
  'the AI SDK, an approval by two names of its question': [
    'approval',
    async ({ send }, ...values) => {
      const asked = await send('/api/chat', { id: 'a', messages: [question] });
      const id = found(asked, /"approvalId":"([^"]+)"/u);
      const parts = values.map((approved, at) => ({
        state: 'approval-responded',
        approval: { id: at === 0 ? id : `${id}?1`, approved },
      }));
      return send('/api/chat', { id: 'a', messages: [{ id: 'm', role: 'assistant', parts }] });
    },
  ],
  'the AI SDK, a result': [
    'result',
    async ({ send }, ...values) => {
      const asked = await send('/api/chat', { id: 'a', messages: [question] });
      const toolCallId = found(asked, /"toolCallId":"([^"]+)"/u);
      const messageId = found(asked, /"messageId":"([^"]+)"/u);
      const parts = values.flatMap((output, at) => [
        {
          type: 'tool-where',
          toolCallId: `${toolCallId}${'x'.repeat(at)}`,
          state: 'output-available',
          output,
        },
        {
          type: 'data-suspended',
          data: { toolCallId: `${toolCallId}${'x'.repeat(at)}`, toolName: 'where', localId: 'p' },
        },
      ]);
      const answered = {
        id: messageId,
        role: 'assistant',
        parts: [{ type: 'step-start' }, ...parts],
      };
      return send('/api/chat', { id: 'a', messages: [question, answered] });
    },
  ],
  'the AI SDK, a result by two parts of one call': [
    'result',
    async ({ send }, ...values) => {
      const asked = await send('/api/chat', { id: 'a', messages: [question] });
      const toolCallId = found(asked, /"toolCallId":"([^"]+)"/u);
      const id = found(asked, /"messageId":"([^"]+)"/u);
      const parts = [
        { type: 'step-start' },
        ...values.map((output) => ({
          ...{ type: 'tool-where', toolCallId, state: 'output-available' },
          output,
        })),
        { type: 'data-suspended', data: { toolCallId, toolName: 'where', localId: 'p' } },
      ];
      return send('/api/chat', { id: 'a', messages: [question, { id, role: 'assistant', parts }] });
    },
  ],
  'AG-UI, an interrupt': [
    'approval',
    async ({ send }, ...values) => {
      const asked = await send('/api/ag-ui', agUiRun('r1', { messages: [asksAgUi] }));
      const interruptId = found(asked, /"interrupts":\[\{"id":"([^"]+)"/u);
      const resume = values.map((payload) => ({ interruptId, status: 'resolved', payload }));
      return send('/api/ag-ui', agUiRun('r2', { messages: [], resume }));
    },
  ],
  'AG-UI, a result': [
    'result',
    async ({ send }, ...values) => {
      const asked = await send('/api/ag-ui', agUiRun('r1', { messages: [asksAgUi] }));
      const toolCallId = found(asked, /"toolCallId":"([^"]+)"/u);
      const id = found(asked, /"parentMessageId":"([^"]+)"/u);
      const made = {
        id: toolCallId,
        type: 'function',
        function: { name: 'where', arguments: '{}' },
      };
      const results = values.map((content, at) => ({
        ...{ id: `t${at}`, role: 'tool', toolCallId },
        content: String(content),
      }));
      const messages = [asksAgUi, { id, role: 'assistant', toolCalls: [made] }, ...results];
      return send('/api/ag-ui', agUiRun('r2', { messages }));
    },
  ],
  'the Responses API, a result': [
    'result',
    async ({ send }, ...values) => {
      const asked = await send('/v1/responses', { model: 'helper', input: 'Do it.' });
      const { id } = JSON.parse(asked.body) as { id: string };
      const items = values.map((output) => ({
        ...{ type: 'function_call_output', call_id: 'p', output: String(output) },
      }));
      return send('/v1/responses', { model: 'helper', previous_response_id: id, input: items });
    },
  ],
  'the Responses API, an approval': [
    'approval',
    async ({ send }, ...values) => {
      const asked = await send('/v1/responses', { model: 'helper', input: 'Do it.' });
      const { id } = JSON.parse(asked.body) as { id: string };
      const request = found(asked, /"id":"(mcpr_[^"]+)"/u);
      const items = values.map((approve) => ({
        ...{ type: 'mcp_approval_response', approval_request_id: request, approve },
      }));
      return send('/v1/responses', { model: 'helper', previous_response_id: id, input: items });
    },
  ],
};

const rows = Object.entries(clients).map(([what, [kind, client]]) => ({ what, kind, client }));

describe('T12, T13: a request that answers one question twice', () => {
  it.each(rows)('$what: differently: is a 400, and changes nothing', async ({ kind, client }) => {
    const server = serving(kind);
    const values = kind === 'approval' ? [true, false] : ['red', 'blue'];
    const { status, body } = await client(server, ...values);
    expect([status, body]).toEqual([400, expect.stringMatching(/twice|same id/u)]);
    expect(server.paid).toEqual([]);
    expect(server.model.requests).toHaveLength(1);
    if (kind === 'approval')
      expect(await firstValueFrom(server.approvals.requests$)).toHaveLength(1);
  });

  it.each(rows)('$what: once: is answered', async ({ kind, client }) => {
    const server = serving(kind);
    const { status, body } = await client(server, kind === 'approval' ? true : 'red');
    expect([status, body]).toEqual([200, expect.stringContaining('Done.')]);
  });
});
