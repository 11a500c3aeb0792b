import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterEach } from '@jest/globals';
import { isRecord } from 'millrace/values';
import type { McpOptions, McpServer } from './index.js';

export type Message = Readonly<Record<string, unknown>>;
export type Answer = (
  message: Message,
  request: IncomingMessage,
  response: ServerResponse,
) => unknown;

const open: Server[] = [];

/** Ends the latest server. */
export const closeLatest = (): Promise<unknown> =>
  new Promise((resolve) => open.pop()?.close(resolve));

afterEach(async () => {
  for (const server of open.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

const bodyOf = async (request: IncomingMessage): Promise<Message> => {
  let body = '';
  for await (const chunk of request) body += String(chunk);
  const parsed: unknown = body === '' ? {} : JSON.parse(body);
  return isRecord(parsed) ? parsed : {};
};

export const listening = async (
  handle: (message: Message, request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> => {
  const server = createServer((request, response) => {
    void bodyOf(request).then((message) => handle(message, request, response));
  });
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/mcp`;
};

export const send = (
  response: ServerResponse,
  status: number,
  body?: unknown,
  session = 'one',
): void => {
  response.writeHead(status, {
    'content-type': 'application/json',
    ...(session !== '' && { 'mcp-session-id': session }),
  });
  response.end(body === undefined ? undefined : JSON.stringify(body));
};

/** Answers a request with a result. */
export const answer = (response: ServerResponse, message: Message, result: unknown): void =>
  send(response, 200, { jsonrpc: '2.0', id: message['id'], result });

export const results: Readonly<Record<string, (message: Message) => unknown>> = {
  initialize: () => ({
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'web', version: '1' },
  }),
  'tools/list': () => ({
    tools: [{ name: 'use', description: 'Is use.', inputSchema: { type: 'object' } }],
  }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'use ran' }] }),
};

/** A server of the protocol, with the answers to some methods in another way. */
export const web = (other: Readonly<Record<string, Answer>> = {}): Promise<string> =>
  listening((message, request, response) => {
    const method = request.method === 'POST' ? String(message['method']) : (request.method ?? '');
    const special = other[method];
    if (special !== undefined) {
      special(message, request, response);
      return;
    }
    const result = results[method];
    if (method === 'GET') send(response, 405);
    else if (method === 'DELETE' || method.startsWith('notifications/')) send(response, 202);
    else if (result !== undefined) answer(response, message, result(message));
    else {
      const error = { code: -32601, message: 'no' };
      send(response, 200, { jsonrpc: '2.0', id: message['id'], error });
    }
  });

/** A server that answers some methods with other results. */
export const answering = (
  other: Readonly<Record<string, (message: Message) => unknown>>,
): Promise<string> =>
  web(
    Object.fromEntries(
      Object.entries(other).map(([method, result]): [string, Answer] => [
        method,
        (message, _request, response) => answer(response, message, result(message)),
      ]),
    ),
  );

/** A stream of events to the client. Further messages are written to it. */
export const stream = (response: ServerResponse): ((message: object) => void) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  return (message) =>
    void response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
};

export const at = (
  url: string,
  http: Partial<McpServer['http']> = {},
  options: Partial<McpOptions> = {},
): McpServer => ({
  name: 'web',
  http: { url, ...http },
  timeouts: { connectMs: 5_000 },
  reconnect: { attempts: 1, backoffMs: 10 },
  ...options,
});
