import { afterAll, describe, expect, it } from '@jest/globals';
import type { LookupFunction } from 'node:net';
import { guardedFetch } from './guarded-fetch.js';
import { openSite } from './site.test-support.js';

const site = await openSite({
  '/echo': (request, response) => {
    request.on('data', (data) => response.write(data));
    request.on('end', () => response.end(request.headers['x-a']));
  },
  '/away': (_request, response) => response.writeHead(302, { location: '/echo' }).end(),
});
afterAll(() => site.close());

const { port } = site;
const toHere: LookupFunction = (_host, _options, done) => {
  done(null, [{ address: '127.0.0.1', family: 4 }]);
};

describe('guardedFetch', () => {
  it('X17: refuses private addresses, also those that a name resolves to', async () => {
    const fetch = guardedFetch({ ports: [port], lookup: toHere });
    await expect(fetch(`${site.origin}/echo`)).rejects.toThrow('its address is not public');
    await expect(fetch(`http://wiki.test:${port}/echo`)).rejects.toMatchObject({
      cause: { message: expect.stringContaining('not public') as unknown },
    });
    await expect(guardedFetch()('http://example.com:8080/')).rejects.toThrow('port 8080');
    await expect(guardedFetch()('file:///etc/passwd')).rejects.toThrow('only http and https');
    expect(site.requests).toEqual([]);
    expect(() => guardedFetch({ port: 1 } as never)).toThrow("has no option 'port'");
  });

  it('X17: sends a request to an allowed address, and returns redirects', async () => {
    const fetch = guardedFetch({ ports: [port], allowPrivate: ['127.0.0.1'] });
    const echo = { method: 'POST', body: 'Hi ', headers: { 'x-a': 'you' } };
    const { status, body } = await fetch(`${site.origin}/echo`, echo);
    expect([status, await new Response(body).text()]).toEqual([200, 'Hi you']);
    const moved = await fetch(`${site.origin}/away`);
    expect([moved.status, moved.headers.get('location')]).toEqual([302, '/echo']);
    const abort = new AbortController();
    abort.abort();
    await expect(fetch(`${site.origin}/echo`, { signal: abort.signal })).rejects.toThrow(/abort/iu);
  });
});
