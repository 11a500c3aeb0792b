import { type AgentCard, Task, type TaskState } from '@a2a-js/sdk';
import {
  AgentEvent as SdkEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
} from '@a2a-js/sdk/server';
import { type AgentEvent, createAgent, isEvent, type Reply, type Tool } from 'millrace';
import { record, scriptedModel, text, toolCall } from 'millrace/testing';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Listener = (request: IncomingMessage, response: ServerResponse, url: string) => unknown;

/** An HTTP server on a free port, while a test lasts. */
export const withServer = async <T>(
  listener: Listener,
  test: (url: string) => Promise<T>,
): Promise<T> => {
  let url = '';
  const server = createServer((request, response) => {
    void Promise.resolve(listener(request, response, url)).catch((error: unknown) => {
      response.destroy(error instanceof Error ? error : undefined);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  url = `http://127.0.0.1:${port}`;
  try {
    return await test(url);
  } finally {
    server.closeAllConnections();
    server.close();
  }
};

export const cardAt = (url: string, changes: object = {}): AgentCard =>
  ({
    ...{ name: 'other', description: 'Another agent.', version: '1', skills: [] },
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
    capabilities: { streaming: true, pushNotifications: false, extensions: [] },
    ...{ defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'] },
    ...{ securitySchemes: {}, securityRequirements: [], signatures: [], provider: undefined },
    ...changes,
  }) as AgentCard;

export const json = (response: ServerResponse, body: unknown, status = 200): void => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
};

export const bodyOf = async (request: IncomingMessage): Promise<Record<string, unknown>> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
};

/** A server whose card is right, and whose answers are these. */
export const answering =
  (answer: Listener, card: (url: string) => object = cardAt): Listener =>
  (request, response, url) =>
    request.method === 'GET' ? json(response, card(url)) : answer(request, response, url);

/** The SDK's own server, with an agent that is written with the SDK. */
export const sdkServer = (executor: AgentExecutor, changes: object = {}): Listener => {
  let transport: JsonRpcTransportHandler | undefined;
  return async (request, response, url) => {
    const card = cardAt(url, changes);
    if (request.method === 'GET') return json(response, card);
    transport ??= new JsonRpcTransportHandler(
      new DefaultRequestHandler(card, new InMemoryTaskStore(), executor),
    );
    const body = await bodyOf(request);
    const answer = await transport.handle(body, new ServerCallContext({ requestedVersion: '1.0' }));
    if (!(Symbol.asyncIterator in answer)) return json(response, answer);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for await (const event of answer) response.write(`data: ${JSON.stringify(event)}\n\n`);
    response.end();
  };
};

/** Publishes a task of the SDK. */
export const taskEvent = (taskId: string, contextId: string, state: TaskState, says = '') =>
  SdkEvent.task(
    Task.fromJSON({
      id: taskId,
      contextId,
      status: {
        state,
        ...(says !== '' && {
          message: {
            messageId: 's',
            role: 'ROLE_AGENT',
            parts: [{ text: says }],
            taskId,
            contextId,
          },
        }),
      },
    }),
  );

export interface Ran {
  readonly reply: Reply;
  readonly events: readonly AgentEvent[];
  readonly progress: readonly unknown[];
  /** The result of the tool, as the model saw it. */
  readonly result: string;
  readonly isError: boolean;
}

/** An agent whose model calls the tool once. */
export const ran = async (tool: Tool, input: object = { message: 'Go.' }): Promise<Ran> => {
  const model = scriptedModel([toolCall(tool.name, { ...input })], [text('done')]);
  const agent = createAgent({ model, tools: [tool] });
  const events = await record(agent.stream$('?'));
  const ended = events.findLast((event) => isEvent(event, 'postCall'));
  if (ended === undefined || !isEvent(ended, 'postCall')) throw new Error('There is no reply.');
  const [called] = ended.reply.toolCalls;
  return {
    reply: ended.reply,
    events,
    progress: events.flatMap((event) => (isEvent(event, 'actingChunk') ? [event.value] : [])),
    result: String(called?.output),
    isError: called?.isError === true,
  };
};
