import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { bufferCount, concatMap, defer, lastValueFrom, range, timer } from 'rxjs';
import { mcp, type McpLayer, type McpOptions } from './index.js';
import { createEnter, createMessageReader } from './message-reader.js';
import { bounded, createResponseReader } from './responses.js';
import { ran } from './servers.test-support.js';
import { type Answer, answer, at, type Message, results, send, web } from './web.test-support.js';

const open: { unsubscribe(): void }[] = [];
afterEach(() => open.splice(0).forEach((subscription) => subscription.unsubscribe()));

interface Held {
  readonly servers: McpLayer;
  readonly states: string[];
}

/** A layer that stays connected, and the states of its server. */
const held = (url: string, options: Partial<McpOptions> = {}): Held => {
  const servers = mcp(at(url, {}, options));
  const states: string[] = [];
  open.push(servers.servers$.subscribe(([server]) => states.push(server?.status ?? '')));
  return { servers, states };
};

const use = async (servers: McpLayer): Promise<string> =>
  (await ran([servers], [['web_use']])).results['web_use'] ?? '';

const events = (response: ServerResponse, text: string): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(text);
};
const ok = (message: Message): object => ({
  jsonrpc: '2.0',
  id: message['id'],
  result: results['tools/call']?.(message),
});
const body = (response: ServerResponse, type: string | undefined, text: string): void => {
  response.writeHead(200, type === undefined ? {} : { 'content-type': type });
  response.end(text);
};
/** Ends a response in the middle, once what was written has been sent. */
const cut = (response: ServerResponse): void => void timer(20).subscribe(() => response.destroy());

const unanswered = /failed to run 'use': the response ended without a result/;

describe('T20: a response without a result fails its request immediately', () => {
  it.each<[how: string, call: Answer, other?: Readonly<Record<string, Answer>>]>([
    ['a stream that ends', (_m, _q, response) => (events(response, ': hi\n\n'), response.end())],
    ['a stream that breaks', (_m, _q, response) => (events(response, 'data: {"js'), cut(response))],
    [
      'a stream of other messages',
      (_m, _q, response) => (
        events(response, 'data: {"jsonrpc":"2.0","id":"x","result":{}}\n\n'),
        response.end()
      ),
    ],
    ['202', (_m, _q, response) => send(response, 202)],
    [
      'the answer to another request',
      (message, _q, response) => send(response, 200, { ...ok(message), id: 999 }),
    ],
    ['an empty list', (_m, _q, response) => send(response, 200, [])],
    ...[400, 404, 405, 410].map((status): [string, Answer, Readonly<Record<string, Answer>>] => [
      `a stream whose continuation is ${status}`,
      (_m, _q, response) => (events(response, 'id: 7\ndata: \n\n'), cut(response)),
      { GET: (_m, _q, response) => send(response, status) },
    ]),
  ])('%s', async (_how, call, other = {}) => {
    const { servers } = held(await web({ 'tools/call': call, ...other }), {
      timeouts: { connectMs: 5_000, toolMs: 60_000 },
    });
    expect(await use(servers)).toMatch(unanswered);
  });

  it('unless the stream is continued, also more than once', async () => {
    const seen: unknown[] = [];
    let asked: Message = {};
    const url = await web({
      'tools/call': (message, _request, response) => {
        asked = message;
        events(response, 'id: 1\ndata: \n\n');
        cut(response);
      },
      GET: (_message, request, response) => {
        const last = request.headers['last-event-id'];
        if (last === undefined) return send(response, 405);
        seen.push(last);
        events(
          response,
          last === '1' ? 'id: 2\ndata: \n\n' : `id: 3\ndata: ${JSON.stringify(ok(asked))}\n\n`,
        );
        response.end();
      },
    });
    expect(await use(held(url).servers)).toBe('use ran');
    expect(seen).toEqual(['1', '2']);
  });
});

describe('T20: a response in another form', () => {
  it.each<[how: string, type: string | undefined, text: (message: Message) => string]>([
    ['JSON as text', 'text/plain', (message) => JSON.stringify(ok(message))],
    ['JSON of no type', undefined, (message) => JSON.stringify(ok(message))],
    [
      'JSON of a type in capitals',
      'Application/JSON; Charset=UTF-8',
      (message) => JSON.stringify(ok(message)),
    ],
    [
      'a stream of a type in capitals',
      'Text/Event-Stream',
      (message) => `data: ${JSON.stringify(ok(message))}\n\n`,
    ],
    [
      'a last event without an empty line',
      'text/event-stream',
      (message) => `data: ${JSON.stringify(ok(message))}`,
    ],
    [
      'no version of JSON-RPC',
      'application/json',
      (message) => JSON.stringify({ ...ok(message), jsonrpc: undefined }),
    ],
  ])('%s is read', async (_how, type, text) => {
    const url = await web({
      'tools/call': (message, _q, response) => body(response, type, text(message)),
    });
    expect(await use(held(url).servers)).toBe('use ran');
  });

  it.each<[how: string, call: Answer, text: RegExp]>([
    [
      'a page',
      (_m, _q, response) => body(response, 'text/html', '<h1>Log in</h1>'),
      /its response is not JSON \(text\/html\)\.$/,
    ],
    [
      'nothing',
      (_m, _q, response) => body(response, 'application/json', ''),
      /its response is empty\.$/,
    ],
    [
      'neither result nor error',
      ({ id }, _q, response) => send(response, 200, { jsonrpc: '2.0', id }),
      /neither a result nor an error\.$/,
    ],
    [
      'a redirect of a POST',
      (_m, _q, response) => (response.writeHead(302, { location: '/x' }), response.end()),
      /HTTP 302, a redirect that is not followed\. Set 'url'/,
    ],
  ])('%s: the model reads a sentence', async (_how, call, text) => {
    expect(await use(held(await web({ 'tools/call': call })).servers)).toMatch(text);
  });
});

describe('T20: a request that fails costs that request only', () => {
  it('with a broken socket: another request and the session continue', async () => {
    let finish = (): unknown => undefined;
    let sessions = 0;
    const url = await web({
      initialize: (message, _request, response) => {
        sessions += 1;
        answer(response, message, results['initialize']?.(message));
      },
      'tools/list': (message, _request, response) =>
        answer(response, message, {
          tools: ['use', 'slow'].map((name) => ({ name, inputSchema: { type: 'object' } })),
        }),
      'tools/call': (message, request, response) => {
        if (JSON.stringify(message).includes('slow')) {
          finish = () => answer(response, message, results['tools/call']?.(message));
          return;
        }
        request.socket.destroy();
        finish();
      },
    });
    const { servers, states } = held(url);
    const { results: all } = await ran([servers], [['web_slow'], ['web_use']]);
    expect(all).toMatchObject({
      web_slow: 'use ran',
      web_use: expect.stringMatching(/cannot be reached/),
    });
    expect([sessions, states]).toEqual([1, ['connecting', 'connected']]);
  });

  it('any number of times: refusals do not count as invalid messages', async () => {
    const url = await web({ 'tools/call': (_m, _q, response) => send(response, 500) });
    const { servers, states } = held(url);
    const all$ = range(0, 120).pipe(
      concatMap(() => defer(() => use(servers))),
      bufferCount(120),
    );
    expect(new Set(await lastValueFrom(all$)).size).toBe(1);
    expect(states).toEqual(['connecting', 'connected']);
  }, 30_000);
});

describe('X6: an event that is too long', () => {
  const length = 1_000;
  const passed = async (chunks: readonly string[]): Promise<number> => {
    let exceeded = 0;
    const source = new ReadableStream<Uint8Array>({
      start: (controller) => {
        chunks.forEach((chunk) => controller.enqueue(new TextEncoder().encode(chunk)));
        controller.close();
      },
    });
    const response = new Response(source, { headers: { 'content-type': 'text/event-stream' } });
    await bounded(response, length, () => (exceeded += 1))
      .text()
      .catch(() => '');
    return exceeded;
  };

  it('ends the response, in any number of lines and pieces', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('\n', '\r', '\r\n'),
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 1, max: 50 }),
        async (end, ofLine, size) => {
          const line = `data: ${'x'.repeat(ofLine)}${end}`;
          const cutUp = (text: string): string[] =>
            text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
          const lines = Math.floor((length - 2) / line.length);
          const event = `${line.repeat(lines)}${end}`;
          expect(await passed(cutUp(event.repeat(3)))).toBe(0);
          expect(await passed(cutUp(line.repeat(lines + 2)))).toBe(1);
        },
      ),
    );
  });
});

it('X6: forgets the streams that have been answered', async () => {
  const reader = createResponseReader(createMessageReader(createEnter()));
  const read = (text: string, lastEvent?: string): Promise<string> =>
    reader
      .read(new Response(text, { headers: { 'content-type': 'text/event-stream' } }), {
        request: lastEvent === undefined ? { id: 1, method: 'tools/call' } : {},
        lastEvent,
        hasStream: false,
      })
      .text();
  await read('id: a\ndata: \n\nid: b\ndata: \n\n');
  expect(['a', 'b'].map((it) => reader.isAwaited(it))).toEqual([false, true]);
  await read('id: c\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n', 'b');
  expect(['a', 'b', 'c'].map((it) => reader.isAwaited(it))).toEqual([false, false, false]);
});
