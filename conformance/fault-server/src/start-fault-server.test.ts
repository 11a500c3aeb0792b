import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  bytes,
  forever,
  hangUp,
  json,
  reset,
  type ResponseScript,
  type Scenario,
  stall,
  startFaultServer,
  status,
  streamed,
} from './index.js';
import type { FaultServer, Played } from './index.js';

let server: FaultServer;
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(() => server.close());

const play = (...responses: readonly ResponseScript[]): Promise<Played> =>
  server.play({ responses });

const question = { model: 'm', messages: [{ role: 'user', content: 'Hello?' }] };

const ask = (
  { url }: Played,
  {
    body = question,
    signal,
    ...init
  }: {
    body?: unknown;
    signal?: AbortSignal;
    headers?: Record<string, string>;
    path?: string;
    method?: string;
  } = {},
): Promise<Response> =>
  fetch(`${url}${init.path ?? '/chat/completions'}`, {
    method: init.method ?? 'POST',
    headers: init.headers ?? { 'content-type': 'application/json', authorization: 'Bearer sk-1' },
    ...(init.method === 'GET' ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });

/** Asks with a client that hands out pieces as they come: `fetch` joins those that are there at once. */
const piecesOf = ({ url }: Played): Promise<readonly string[]> =>
  new Promise((resolve) => {
    const headers = { 'content-type': 'application/json', authorization: 'Bearer sk-1' };
    const asked = request(`${url}/chat/completions`, { method: 'POST', headers }, (response) => {
      const pieces: string[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece.toString()));
      response.on('end', () => resolve(pieces));
    });
    asked.end(JSON.stringify(question));
  });

describe('startFaultServer', () => {
  it('gives each request the next response, and those beyond the last the last again', async () => {
    const played = await play(json(500, 'one'), json(200, 'two'));
    const said = [await ask(played), await ask(played), await ask(played)];
    expect(said.map((response) => response.status)).toEqual([500, 200, 200]);
    expect(await Promise.all(said.map((response) => response.json()))).toEqual([
      'one',
      'two',
      'two',
    ]);
    expect(await played.requests()).toHaveLength(3);
  });

  it('X16: refuses half a character, which is no JSON to the vendors', async () => {
    const played = await play(json(200, 'fine'));
    const say = (content: string) => ({ ...question, messages: [{ role: 'user', content }] });
    const half = await ask(played, { body: say('Half \ud83d') });
    expect(half.status).toBe(400);
    expect(await half.text()).toContain('no low surrogate');
    expect((await ask(played, { body: say('Whole \ud83d\ude00 and "\\ud83d"') })).status).toBe(200);
  });

  it('plays scenarios side by side', async () => {
    const [one, other] = [await play(json(200, 'one')), await play(json(200, 'other'))];
    expect(await (await ask(other)).json()).toBe('other');
    expect(await (await ask(one)).json()).toBe('one');
    expect(await one.requests()).toHaveLength(1);
  });

  it('reports what was asked, and when it was over', async () => {
    const played = await play(json(200, {}));
    await (await ask(played, { path: '/v1/chat/completions?a=b' })).text();
    const seen = await played.closed(0);
    expect(seen).toMatchObject({
      method: 'POST',
      path: '/v1/chat/completions?a=b',
      atOther: false,
      headers: { authorization: 'Bearer sk-1' },
      body: question,
      violations: [],
      closedEarly: false,
      bytesWritten: 2,
    });
    expect(seen.closedAt).toBeGreaterThanOrEqual(seen.startedAt);
  });

  it('sends bytes in pieces, each as a packet of its own', async () => {
    const cases: [ResponseScript, string[]][] = [
      [[bytes('äbc', { pieces: 1 })], ['\ufffd', '\ufffd', 'b', 'c']],
      [[bytes('abcde', { pieces: [1, 3] })], ['a', 'bcd', 'e']],
      [[bytes({ base64: 'AAEC' }, { times: 2, pieces: 3 })], ['\0\x01\x02', '\0\x01\x02']],
      [streamed(['data: 1\n\n', 'data: 2\n\n']), ['data: 1\n\ndata: 2\n\n']],
    ];
    for (const [script, pieces] of cases) {
      expect(await piecesOf(await play(script))).toEqual(pieces);
    }
  });

  it('ends early: before the headers, after them, and in the middle', async () => {
    await expect(ask(await play([reset]))).rejects.toThrow('fetch failed');
    const scripts = [
      [status(200), reset],
      [bytes('a'), reset],
      [bytes('a'), hangUp],
    ];
    for (const script of scripts) {
      const played = await play(script);
      await expect(ask(played).then((response) => response.text())).rejects.toThrow('terminated');
      expect(await played.closed(0)).toMatchObject({ closedEarly: false });
    }
  });

  it('sees that a client leaves, in a stall and in a flood', async () => {
    const scripts = [
      [stall()],
      [status(200), stall()],
      [bytes('a'), stall({ bytes: ': still here\n', everyMs: 1 })],
      [forever('data: {}\n\n')],
    ];
    for (const script of scripts) {
      const played = await play(script);
      const abort = new AbortController();
      const asked = ask(played, { signal: abort.signal }).then((response) => response.text());
      expect(await played.arrived(0)).toMatchObject({ closedEarly: false });
      abort.abort();
      await expect(asked).rejects.toThrow('aborted');
      expect(await played.closed(0)).toMatchObject({ closedEarly: true });
      expect(await played.settled()).toHaveLength(1);
    }
  });

  it('floods no faster than the client reads', async () => {
    const played = await play([forever('x'.repeat(1000))]);
    const abort = new AbortController();
    await ask(played, { signal: abort.signal });
    abort.abort();
    const { bytesWritten } = await played.closed(0);
    expect(bytesWritten).toBeGreaterThan(1000);
    expect(bytesWritten).toBeLessThan(50_000_000);
  });

  it('fills in the key, the address and the other origin', async () => {
    const redirect = [status(308, { location: '{{other}}' }), bytes('{{key}} {{self}}')];
    const played = await server.play({
      responses: [redirect, json(200, 'led away')],
      auth: 'none',
    });
    const { url } = played;
    expect(await (await ask(played)).json()).toBe('led away');
    const seen = await played.requests();
    expect(seen.map(({ atOther }) => atOther)).toEqual([false, true]);
    const echoed = await ask(await play([bytes('{{key}} {{self}}')]));
    expect(await echoed.text()).toMatch(
      new RegExp(`^sk-1 ${new URL(url).origin}/\\d+/chat/completions$`),
    );
  });

  it('refuses what the vendor would, in its words, for any script', async () => {
    const json = { 'content-type': 'application/json' };
    const claude = { ...json, 'anthropic-version': '2026-10-21' };
    const cases: [Parameters<typeof ask>[1], number, string][] = [
      [{ headers: json }, 401, 'invalid_api_key'],
      [{ headers: { ...json, authorization: 'Bearer ' } }, 401, 'invalid_api_key'],
      [{ headers: claude, path: '/v1/messages' }, 401, 'authentication_error'],
      [{ headers: claude, path: '/messages' }, 404, 'not_found_error'],
      [{ method: 'GET' }, 404, 'invalid_request_error'],
      [{ path: '/v1/nothing' }, 404, 'Invalid URL (POST /v1/nothing)'],
      [{ body: { model: 'm' } }, 400, `Missing required parameter: 'messages'.`],
      [{ body: 'text' }, 400, 'expected an object'],
      [{ path: '/responses' }, 400, `Missing required parameter: 'input'.`],
      [{ headers: { ...claude, 'x-api-key': 'k' }, path: '/v1/messages' }, 400, 'max_tokens'],
    ];
    for (const [request, code, words] of cases) {
      const played = await play([bytes('{}')]);
      const response = await ask(played, request);
      expect([response.status, await response.text()]).toEqual([
        code,
        expect.stringContaining(words),
      ]);
      expect((await played.requests())[0]?.violations).not.toEqual([]);
    }
  });

  it('takes requests without a key, and with fields of its own, if a scenario allows it', async () => {
    const scenario: Scenario = { responses: [[]], auth: 'none', allow: ['top_k'] };
    const request = {
      headers: { 'content-type': 'application/json' },
      body: { ...question, top_k: 1 },
    };
    expect((await ask(await server.play(scenario), request)).status).toBe(200);
  });

  it('ends with its last word said, and fails what is open', async () => {
    const own = await startFaultServer();
    const played = await own.play({ responses: [[]] });
    const open = expect(played.closed(0)).rejects.toThrow('has ended');
    await own.close();
    await own.close();
    await open;
    await expect(ask(played)).rejects.toThrow('fetch failed');
  });
});
