import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, type Model } from 'millrace';
import { finish, text } from 'millrace/testing';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions } from 'millrace/sessions';
import { openFiles } from '@millrace/store';
import { lastValueFrom, NEVER, of, tap } from 'rxjs';
import { chatServer, type ChatServer, type ChatServerOptions } from './index.js';

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

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Answers, but never to a question with 'wait'. */
const answering: Model = {
  name: 'answering',
  stream$: ({ messages }) =>
    JSON.stringify(messages.at(-1)).includes('wait') ? NEVER : of(text('A cat.'), finish()),
};

const serving = (options: ChatServerOptions = {}, model = answering) => {
  const server: ChatServer = chatServer(createAgent({ name: 'helper', model }), {
    user: () => 'ann',
    ...options,
  });
  ends.push(() => server.close({ timeoutMs: 0 }));
  const send = (method: string, path: string, body?: object) =>
    server.respond(
      new Request(`http://localhost/api/chat${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      }),
    );
  let pictures = 0;
  /** Asks about a picture of this size, in bytes, that no other chat has. */
  const ask = async (id: string, size: number, words = 'What is this?'): Promise<number> => {
    pictures += 1;
    const data = String(pictures)
      .padStart(8, 'x')
      .repeat(size / 8);
    const url = `data:image/png;base64,${data}`;
    const parts = [
      { type: 'text', text: words },
      { type: 'file', mediaType: 'image/png', url },
    ];
    const response = await send('POST', '', {
      id,
      messages: [{ id: `q-${id}`, role: 'user', parts }],
    });
    if (words === 'What is this?') await response.text();
    else await response.body?.cancel();
    return response.status;
  };
  const shown = async (id: string): Promise<number> => {
    const read = (await (await send('GET', `/${id}`)).json()) as { messages?: readonly unknown[] };
    return read.messages?.length ?? 0;
  };
  const listed = async (): Promise<readonly string[]> => {
    const read = (await (await send('GET', '?limit=200')).json()) as {
      chats: readonly { readonly id: string }[];
    };
    return read.chats.map(({ id }) => id);
  };
  return { send, ask, shown, listed };
};

const files = () => {
  const directory = mkdtempSync(join(tmpdir(), 'bounds-'));
  const store = openFiles(directory);
  ends.push(async () => {
    await lastValueFrom(store.close$(), { defaultValue: undefined });
    rmSync(directory, { recursive: true });
  });
  return store;
};

const megabyte = 1_000_000;

describe('S12: the memory of a server', () => {
  it('does not grow with the number of chats in its store, also with pictures', async () => {
    const { ask, shown } = serving({ store: files() });
    const before = await heap();
    const grown: number[] = [];
    for (const [from, to] of [
      [0, 25],
      [25, 60],
    ] as const) {
      for (let chat = from; chat < to; chat += 1) expect(await ask(`${chat}`, megabyte)).toBe(200);
      grown.push((await heap()) - before);
    }
    // 16 MB of idle conversations, and what JavaScript needs besides.
    for (const bytes of grown) expect(bytes).toBeLessThan(24 * megabyte);
    expect((grown[1] ?? 0) - (grown[0] ?? 0)).toBeLessThan(4 * megabyte);
    expect(await shown('0')).toBe(2);
  }, 120_000);

  it('does not include chats that were removed or never existed', async () => {
    const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
    const { ask, send, shown } = serving({ store });
    const play = async (from: number, to: number): Promise<void> => {
      for (let chat = from; chat < to; chat += 1) {
        await ask(`${chat}`, 8_000);
        expect(await shown(`${chat}`)).toBe(2);
        expect(await shown(`unknown ${chat}`)).toBe(0);
        expect((await send('DELETE', `/${chat}`)).status).toBe(204);
      }
    };
    await play(0, 150);
    const before = await heap();
    await play(150, 300);
    // Code that is compiled meanwhile takes some.
    expect(((await heap()) - before) / 150).toBeLessThan(6_000);
  }, 120_000);
});

describe('S12: the store reads of a server', () => {
  it('does not include ended calls, and removes the calls of a chat in one operation', async () => {
    const driver = inProcessCalls();
    const listed: string[] = [];
    const removed: (readonly string[])[] = [];
    const calls = createCallStore({
      ...driver,
      list$: (query) =>
        driver
          .list$(query)
          .pipe(tap((found) => listed.push(`${Object.keys(query ?? {}).join()} ${found.length}`))),
      removeAll$: (callIds) => {
        removed.push(callIds);
        return driver.removeAll$(callIds);
      },
    });
    const store = { calls, sessions: inProcessSessions() };
    const first = serving({ store });
    for (let chat = 0; chat < 30; chat += 1) await first.ask(`${chat}`, 80);
    listed.length = 0;
    const second = serving({ store });
    expect(await second.shown('7')).toBe(2);
    expect(listed).toEqual(['isUnfinished 0', 'sessionId 1']);
    removed.length = 0;
    expect((await second.send('DELETE', '/7')).status).toBe(204);
    expect(removed.map(({ length }) => length)).toEqual([1]);
    expect(await second.shown('7')).toBe(0);
  });
});

describe('S12: a server without a store', () => {
  it('removes the least recently used chats, and notifies their clients', async () => {
    const { ask, send, shown, listed } = serving({ keepBytes: 20 * megabyte });
    const before = await heap();
    await ask('first', megabyte);
    const changes = await send('GET', '/first/changes');
    const followed = changes.text();
    for (let chat = 0; chat < 60; chat += 1) expect(await ask(`${chat}`, megabyte)).toBe(200);
    const left = await listed();
    expect(left.length).toBeGreaterThan(1);
    expect(left.length).toBeLessThan(20);
    expect(left[0]).toBe('59');
    expect(await shown('59')).toBe(2);
    expect(await shown('first')).toBe(0);
    expect(await followed).toContain('deleted');
    expect((await heap()) - before).toBeLessThan(45 * megabyte);
    // A chat that was removed begins anew.
    expect(await ask('first', 80)).toBe(200);
    expect(await shown('first')).toBe(2);
  }, 60_000);

  it('keeps those that are read, those with a running call, and the last one of any size', async () => {
    const { ask, shown, listed } = serving({ keepBytes: 200_000 });
    await ask('waits', 80);
    await ask('waits', 80, 'Please wait.');
    await ask('read', 80);
    for (let chat = 0; chat < 10; chat += 1) {
      expect(await shown('read')).toBe(2);
      await ask(`${chat}`, 8_000);
    }
    await ask('big', megabyte);
    expect([...(await listed())].sort()).toEqual(['big', 'waits']);
    await ask('last', 80);
    expect([...(await listed())].sort()).toEqual(['last', 'waits']);
  }, 60_000);

  it('frees what is removed by a client', async () => {
    const { ask, send, listed } = serving();
    await ask('warm', megabyte);
    const before = await heap();
    for (let chat = 0; chat < 20; chat += 1) await ask(`${chat}`, megabyte);
    expect((await heap()) - before).toBeGreaterThan(20 * megabyte);
    for (let chat = 0; chat < 20; chat += 1) {
      expect((await send('DELETE', `/${chat}`)).status).toBe(204);
    }
    expect(await listed()).toEqual(['warm']);
    expect((await heap()) - before).toBeLessThan(3 * megabyte);
  }, 60_000);

  it('has a limit only without a store', () => {
    expect(() => serving({ store: files(), keepBytes: 1 })).toThrow('without a');
    expect(() => serving({ keepBytes: -1 })).toThrow('keepBytes');
  });
});
