import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { NEVER, type Observable } from 'rxjs';
import { type Client, createClient } from './client.js';

/** A server that begins its answers, and never ends them. */
const server = createServer((_, response) => {
  response.write('{"line":');
  server.emit('asked', response);
});
let client: Client;
beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  client = createClient({
    ...{ token: 'secret', api: `http://127.0.0.1:${port}/api/`, wait$: () => NEVER },
  });
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

const requests: readonly (readonly [string, () => Observable<unknown>])[] = [
  ['the feed', () => client.feed$],
  ['a search', () => client.search$('words')],
  ['older calls', () => client.older$],
  ['what was sent to a provider', () => client.exchanges$('1')],
  ['a fork', () => client.fork$('c', { at: '1' })],
];

describe('a request of the page', () => {
  it.each(requests)('for %s ends when the view that has asked closes', async (_, request$) => {
    const errors: unknown[] = [];
    const asked = once(server, 'asked');
    const subscription = request$().subscribe({ error: (error: unknown) => errors.push(error) });
    const [response] = (await asked) as [ServerResponse];
    const closed = once(response, 'close');
    subscription.unsubscribe();
    await closed;
    expect(response.writableFinished).toBe(false);
    expect(errors).toEqual([]);
  });
});
