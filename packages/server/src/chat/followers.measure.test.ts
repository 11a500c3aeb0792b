import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { NEVER } from 'rxjs';
import { chatServer } from './index.js';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

/** The heap in use, in bytes, without what nothing refers to. */
const heap = async (): Promise<number> => {
  for (let times = 0; times < 4; times += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    gc();
  }
  return process.memoryUsage().heapUsed;
};

it('S12: each client that follows a silent call takes the same memory, and gives it back when it leaves', async () => {
  const agent = createAgent({ name: 'silent', model: { name: 'silent', stream$: () => NEVER } });
  const server = chatServer(agent);
  const headers = { 'content-type': 'application/json' };
  const send = (path: string, init: RequestInit): Promise<Response> =>
    server.respond(new Request(`http://localhost/api/chat${path}`, { headers, ...init }));
  const message = { id: 'q', role: 'user', parts: [{ type: 'text', text: '?' }] };
  const asked = await send('', {
    method: 'POST',
    body: JSON.stringify({ id: 'a', messages: [message] }),
  });
  expect(asked.status).toBe(200);
  const follow = async () => {
    const { body } = await send('/a/stream', { method: 'GET' });
    const reader = body?.getReader();
    // The first event: from here on, nothing happens.
    expect((await reader?.read())?.done).toBe(false);
    return reader;
  };
  const followers = async (count: number) => {
    const readers = await Promise.all(Array.from({ length: count }, follow));
    // Waits for the next event, as a connection does.
    const waiting = readers.map((reader) => reader?.read());
    return async () => {
      await Promise.all(readers.map((reader) => reader?.cancel()));
      await Promise.all(waiting);
    };
  };
  await (
    await followers(300)
  )();
  const before = await heap();
  const leaves = [await followers(200)];
  const some = (await heap()) - before;
  leaves.push(await followers(600));
  const many = (await heap()) - before;
  for (const leave of leaves) await leave();
  const left = (await heap()) - before;
  await asked.body?.cancel();
  await server.close({ timeoutMs: 0 });
  // Without the connection: 44 kB, and more beside other work. The law is what counts.
  expect(some / 200).toBeLessThan(100_000);
  expect(many / 800).toBeLessThan((1.3 * some) / 200);
  expect(left).toBeLessThan(many / 5);
});

it('S12: a stream that is open does not hold its request', async () => {
  const agent = createAgent({ name: 'silent', model: { name: 'silent', stream$: () => NEVER } });
  const server = chatServer(agent, { onAccess: () => undefined });
  const headers = { 'content-type': 'application/json' };
  const message = { id: 'q', role: 'user', parts: [{ type: 'text', text: '?' }] };
  const body = JSON.stringify({ id: 'a', messages: [message] });
  const asked = await server.respond(
    new Request('http://localhost/api/chat', { method: 'POST', headers, body }),
  );
  const open = async () => {
    const request = new Request('http://localhost/api/chat/a/stream');
    const reader = (await server.respond(request)).body?.getReader();
    expect((await reader?.read())?.done).toBe(false);
    return { reader, request: new WeakRef(request) };
  };
  const { reader, request } = await open();
  await heap();
  expect(request.deref()).toBeUndefined();
  await reader?.cancel();
  await asked.body?.cancel();
  await server.close({ timeoutMs: 0 });
});

it('S12: a call that streams does not hold the body of its request', async () => {
  const agent = createAgent({ name: 'silent', model: { name: 'silent', stream$: () => NEVER } });
  let held = new WeakRef<object>({});
  const server = chatServer(agent, {
    metadata: ({ body }) => {
      held = new WeakRef(Object(body));
      return {};
    },
  });
  const message = { id: 'q', role: 'user', parts: [{ type: 'text', text: '?' }] };
  const asked = await server.respond(
    new Request('http://localhost/api/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'a', messages: [message] }),
    }),
  );
  const reader = asked.body?.getReader();
  expect((await reader?.read())?.done).toBe(false);
  expect(held.deref()).toHaveProperty('id', 'a');
  await heap();
  expect(held.deref()).toBeUndefined();
  await reader?.cancel();
  await server.close({ timeoutMs: 0 });
});
