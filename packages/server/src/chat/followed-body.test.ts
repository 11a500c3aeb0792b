import { afterEach, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { NEVER } from 'rxjs';
import { type AccessEntry, chatServer } from './index.js';

const { ReadableStream } = globalThis;
afterEach(() => {
  globalThis.ReadableStream = ReadableStream;
});

/** Counts the streams that the program makes. */
const countStreams = (): { readonly made: number } => {
  const count = { made: 0 };
  globalThis.ReadableStream = new Proxy(ReadableStream, {
    construct: (target, given: ConstructorParameters<typeof ReadableStream>) => {
      count.made += 1;
      return new target(...given);
    },
  });
  return count;
};

it('S12: a client that follows a call takes one stream, and its end is logged once, also if it leaves before it reads', async () => {
  const agent = createAgent({ name: 'silent', model: { name: 'silent', stream$: () => NEVER } });
  const log: AccessEntry[] = [];
  const server = chatServer(agent, {
    onDisconnect: 'abort',
    origins: ['https://app.example'],
    onAccess: (entry) => log.push(entry),
  });
  const headers = { 'content-type': 'application/json' };
  const send = (path: string, init: RequestInit): Promise<Response> =>
    server.respond(new Request(`http://localhost/api/chat${path}`, { headers, ...init }));
  const message = { id: 'q', role: 'user', parts: [{ type: 'text', text: '?' }] };
  const body = JSON.stringify({ id: 'a', messages: [message] });
  const asked = await send('', { method: 'POST', body });
  const count = countStreams();
  const follow = (origin: Readonly<Record<string, string>>) =>
    send('/a/stream', { method: 'GET', headers: origin });
  const [plain, other] = [await follow({}), await follow({ origin: 'https://app.example' })];
  expect(count.made).toBe(2);
  expect(other.headers.get('access-control-allow-origin')).toBe('https://app.example');
  const reader = plain.body?.getReader();
  expect((await reader?.read())?.done).toBe(false);
  expect(log).toEqual([]);
  await other.body?.cancel();
  await reader?.cancel();
  expect(log).toHaveLength(2);
  expect(log.map(({ status, callId }) => [status, callId === undefined])).toEqual([
    [200, false],
    [200, false],
  ]);
  // The call lives until its last reader has left, which has read nothing.
  expect((await follow({})).status).toBe(200);
  await asked.body?.cancel();
  await server.close({ timeoutMs: 0 });
});
