import { createServer, type RequestListener } from 'node:http';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import { type Agent, createAgent, type Demand, type Model, textOf } from 'millrace';
import { type CallStore, createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { inputOfUiMessages, uiMessageStreamResponse } from '@millrace/server';
import { serve, type ServeOptions, toNodeListener } from '@millrace/server/node';
import { openFiles } from '@millrace/store';
import { Hono } from 'hono';
import { streamSSE } from 'hono/streaming';
import { concat, concatMap, filter, firstValueFrom, from, of } from 'rxjs';
import { deltaOf, type Plan, readPlan } from './plan.js';

/**
 * The servers that are measured. `hono` is the floor: a handler by hand that sends the same events. `response` is
 * `uiMessageStreamResponse`, alone and with a journal; `serve` is the chat server, over both stores.
 */
export const serverNames = [
  'hono',
  'response',
  'response, journal in process',
  'response, journal in files',
  'serve, in process',
  'serve, files',
] as const;

/** The floor of what is held: `node:http` by hand. */
export const handFloor = 'node:http';
export type ServerName = (typeof serverNames)[number] | typeof handFloor;

/** How a server is started. */
export interface ServerOptions {
  readonly name: ServerName;
  /** What the store writes is below it. */
  readonly folder: string;
  readonly heartbeatMs: number;
  readonly maxCalls: number;
}

/** Starts a server at a free port of loopback, and resolves to it. */
export const startServer = async (options: ServerOptions): Promise<number> => {
  const { name, folder, heartbeatMs, maxCalls } = options;
  switch (name) {
    case handFloor:
      return listen(openResponses());
    case 'hono':
      return listen(handlerByHand());
    case 'response':
      return listen(toNodeListener({ respond: responseOf(agentWith()) }));
    case 'response, journal in process':
      return listen(
        toNodeListener({ respond: responseOf(agentWith(createCallStore(inProcessCalls()))) }),
      );
    case 'response, journal in files':
      return listen(toNodeListener({ respond: responseOf(agentWith(openFiles(folder).calls)) }));
    case 'serve, in process':
      return chats({ heartbeatMs, maxCalls });
    case 'serve, files':
      return chats({ heartbeatMs, maxCalls, store: openFiles(folder) });
  }
};

const bursts = async function* (plan: Plan, demand?: Demand): AsyncGenerator<readonly string[]> {
  await wait(plan.silentMs);
  const startedAt = performance.now();
  for (let sent = 0, turn = 1; sent < plan.deltas; sent += plan.burst, turn += 1) {
    if (demand?.isOpen === false) await firstValueFrom(demand.open$.pipe(filter(Boolean)));
    // Counted from the start: a late timer does not make the answer longer.
    const dueMs = startedAt + turn * plan.everyMs - performance.now();
    await (dueMs > 0 ? wait(dueMs) : nextTurn());
    yield Array.from({ length: Math.min(plan.burst, plan.deltas - sent) }, () => deltaOf(plan));
  }
};

const model: Model = {
  name: 'planned',
  stream$: ({ messages }, { demand }) => {
    const question = messages.findLast(({ role }) => role === 'user');
    const plan = readPlan(question === undefined ? '' : textOf(question));
    const burst$ = from(bursts(plan, demand)).pipe(
      concatMap((burst) => burst.map((text) => ({ type: 'text', text }) as const)),
    );
    return concat(burst$, of({ type: 'finish', finish: 'stop' } as const));
  },
};

const agentWith = (calls?: CallStore): Agent =>
  createAgent({ name: 'planned', model, ...(calls && { use: [journal(calls)] }) });

const chats = async (options: ServeOptions): Promise<number> => {
  const { port } = await new Promise<{ readonly port: number }>((resolve, reject) => {
    serve(agentWith(), { ...options, port: 0 }).subscribe({ next: resolve, error: reject });
  });
  return port;
};

const responseOf =
  (agent: Agent) =>
  async (request: Request): Promise<Response> => {
    const { input, chatId: _, ...message } = inputOfUiMessages(await request.json());
    return uiMessageStreamResponse((demand) => agent.stream$(input, { demand }), message);
  };

/** The events of Millrace, byte for byte but for the ids, from a loop. */
const handlerByHand = (): RequestListener => {
  const app = new Hono();
  app.post('/api/chat', async (context) => {
    const body: unknown = await context.req.json();
    const { input } = inputOfUiMessages(body);
    const plan = readPlan(typeof input === 'string' ? input : '');
    const callId = crypto.randomUUID().replaceAll('-', '').slice(0, 16);
    return streamSSE(context, async (stream) => {
      let index = 0;
      const send = (value: object): Promise<void> => {
        const id = `${callId}:0:${index}`;
        index += 1;
        return stream.writeSSE({ id, data: JSON.stringify(value) });
      };
      const id = `${callId}/1/text/1`;
      await send({ type: 'start', messageId: callId });
      await send({ type: 'start-step' });
      await send({ type: 'text-start', id });
      for await (const burst of bursts(plan)) {
        for (const delta of burst) await send({ type: 'text-delta', id, delta });
      }
      await send({ type: 'text-end', id });
      await send({ type: 'finish-step' });
      await send({ type: 'finish', finishReason: 'stop' });
      await stream.writeSSE({ data: '[DONE]' });
    });
  });
  const fetch = (request: Request): Response | Promise<Response> => app.fetch(request);
  const listener = getRequestListener(fetch, { overrideGlobalObjects: false });
  return (request, response) => void listener(request, response);
};

/** Answers each question like Millrace. The streams of a silent answer stay open. */
const openResponses = (): RequestListener => async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) if (chunk instanceof Buffer) chunks.push(chunk);
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const send = (value: object | string): boolean =>
    response.write(`data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`);
  send({ type: 'start', messageId: crypto.randomUUID() });
  send({ type: 'start-step' });
  if (request.method !== 'POST') return;
  const { input } = inputOfUiMessages(JSON.parse(Buffer.concat(chunks).toString()));
  const plan = readPlan(typeof input === 'string' ? input : '');
  if (plan.silentMs > 0) return;
  for await (const burst of bursts(plan)) {
    for (const delta of burst) send({ type: 'text-delta', id: '1', delta });
  }
  send('[DONE]');
  response.end();
};

const listen = (listener: RequestListener): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer(listener);
    server.listen({ port: 0, host: '127.0.0.1' }, () => {
      const address = server.address();
      resolve(typeof address === 'object' ? (address?.port ?? 0) : 0);
    });
  });
