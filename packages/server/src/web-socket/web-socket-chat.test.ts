import { describe, expect, it } from '@jest/globals';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer, request as tlsRequest } from 'node:https';
import { connect } from 'node:net';
import { createAgent, type ModelChunk } from 'millrace';
import { marbles, type ScriptedAnswer, scriptedModel, text } from 'millrace/testing';
import { selfSigned } from '@millrace/fault-server';
import {
  filter,
  firstValueFrom,
  ignoreElements,
  lastValueFrom,
  merge,
  NEVER,
  Observable,
  ReplaySubject,
  Subject,
  takeUntil,
  takeWhile,
  tap,
  toArray,
} from 'rxjs';
import { WebSocket } from 'ws';
import type { ChatServer } from '../chat/index.js';
import { serve, type Served, type ServeOptions, toNodeListener } from '../node/index.js';
import { webSocketChat, type WebSocketChatOptions } from './index.js';
import { chatSocketOf } from './web-socket-chat.js';

type Frame = Readonly<Record<string, unknown>>;

/** Serves an agent with these answers while the test lasts. */
const serving = async (
  answers: readonly ScriptedAnswer[],
  test: (served: Served, over$: Subject<void>) => Promise<void>,
  { options, ...serverOptions }: ServeOptions & { readonly options?: WebSocketChatOptions } = {},
): Promise<void> => {
  const over$ = new Subject<void>();
  const agent = createAgent({ name: 'helper', model: scriptedModel(...answers) });
  const served$ = new ReplaySubject<Served>(1);
  const protocols = [webSocketChat(options)];
  serve(agent, { port: 0, signals: [], protocols, onError: () => undefined, ...serverOptions })
    .pipe(takeUntil(over$))
    .subscribe(served$);
  try {
    await test(await firstValueFrom(served$), over$);
  } finally {
    over$.next();
  }
};

/** A client, which is connected. Rejects with the status of a handshake that is refused. */
const connected = async (
  url: string,
  { path = '/api/chat', protocols = [], ...options }: Opening = {},
) => {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, protocols, options);
  const frame$ = new ReplaySubject<Frame>(Infinity);
  const closed$ = new ReplaySubject<number>(1);
  socket.on('message', (data: Buffer) => {
    frame$.next(JSON.parse(data.toString()) as Frame);
  });
  socket.on('close', (code) => {
    closed$.next(code);
  });
  socket.on('error', () => undefined);
  await new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('unexpected-response', (_, response) => {
      reject(new Error(String(response.statusCode)));
      socket.terminate();
    });
  });
  const of = (requestId: string) =>
    frame$.pipe(filter((frame) => frame['requestId'] === requestId));
  return {
    socket,
    say: (frame: object) => {
      socket.send(JSON.stringify(frame));
    },
    frame: (requestId: string, type: string) =>
      firstValueFrom(of(requestId).pipe(filter((frame) => frame['type'] === type))),
    all: (requestId: string) =>
      firstValueFrom(
        of(requestId).pipe(
          takeWhile(({ type }) => type === 'start' || type === 'chunk', true),
          toArray(),
        ),
      ),
    closed: () => firstValueFrom(closed$),
  };
};

interface Opening {
  readonly path?: string;
  readonly protocols?: readonly string[] & string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly autoPong?: boolean;
}

const send = (requestId: string, id = 'a', headers: object = {}, said = 'Hi') => ({
  type: 'send',
  requestId,
  id,
  trigger: 'submit-message',
  messages: [{ id: 'q', role: 'user', parts: [{ type: 'text', text: said }] }],
  headers,
  body: {},
});

const textIn = (frames: readonly Frame[]): string =>
  frames
    .map(({ chunk }) => chunk as Frame | undefined)
    .map((chunk) => (chunk?.['type'] === 'text-delta' ? String(chunk['delta']) : ''))
    .join('');

const timers = (): number =>
  process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

/** Writes raw bytes, and resolves to the answer once it has this. */
const raw = async (url: string, bytes: string, wanted: string): Promise<string> => {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(bytes);
  let seen = '';
  for await (const piece of socket) {
    seen += String(piece);
    if (seen.includes(wanted)) break;
  }
  return seen;
};

describe('a socket on a port', () => {
  it('carries several chats at the same time', () =>
    serving([[text('One.')], [text('Two.')]], async ({ url }) => {
      const { say, all } = await connected(url);
      say(send('r', 'a'));
      say(send('s', 'b'));
      const answers = await Promise.all([all('r'), all('s')]);
      expect(answers.map(textIn).sort()).toEqual(['One.', 'Two.']);
    }));

  it('is for pages of this host, for hosts that are served, and at one path', () =>
    serving([], async ({ url }) => {
      const { host } = new URL(url);
      const status = (opening: Opening) =>
        connected(url, opening).then(
          ({ socket }) => {
            socket.terminate();
            return 'open';
          },
          ({ message }: Error) => message,
        );
      const from = (origin: string) => status({ headers: { origin } });
      expect(await from(`http://${host}`)).toBe('open');
      expect(await from('https://evil.example')).toBe('403');
      expect(await from('null')).toBe('403');
      expect(await from(`http://${host}.evil.example`)).toBe('403');
      expect(await status({ headers: { host: 'evil.example' } })).toBe('421');
      expect(await status({ headers: { host: 'localhost@evil.example' } })).toBe('400');
      expect(await status({ headers: { host: 'localhost/x' } })).toBe('400');
      expect(await status({ path: '/api/other' })).toBe('404');
      // Without an upgrade, the same path lists the conversations.
      expect(await (await fetch(`${url}/api/chat`)).json()).toEqual({ chats: [] });
      const absolute = await raw(
        url,
        `GET http://localhost/api/chat HTTP/1.1\r\nhost: evil.example\r\n${upgrade}\r\n`,
        '\r\n\r\n',
      );
      expect(absolute).toMatch(/^HTTP\/1\.1 [24]/u);
      expect(absolute).not.toMatch(/^HTTP\/1\.1 101/u);
    }));

  it('is for users, by their cookies, their query or their subprotocol, and checks each request', () => {
    let isIn = true;
    const user: ServeOptions['user'] = ({ headers, url }) =>
      isIn &&
      /t0ken/u.test(`${headers.get('cookie')} ${headers.get('sec-websocket-protocol')} ${url}`)
        ? 'ann'
        : undefined;
    return serving(
      [[text('Hello.')]],
      async ({ url }) => {
        await expect(connected(url)).rejects.toThrow('401');
        await connected(url, { headers: { cookie: 't0ken' } });
        await connected(url, { path: '/api/chat?key=t0ken' });
        const { socket, say, all } = await connected(url, { protocols: ['chat', 't0ken'] });
        expect(socket.protocol).toBe('chat');
        say(send('r'));
        expect(textIn(await all('r'))).toBe('Hello.');
        isIn = false;
        say(send('s'));
        const errorText = 'You are not logged in.';
        expect(await all('s')).toEqual([{ type: 'error', requestId: 's', errorText }]);
      },
      { user },
    );
  });

  it('may be open to anyone whose frames are those of users', () =>
    serving(
      [[text('Hello.')]],
      async ({ url }) => {
        const { say, all } = await connected(url);
        say(send('r', 'a', { authorization: 'wrong' }));
        expect((await all('r'))[0]?.['errorText']).toBe('You are not logged in.');
        say(send('s', 'a', { authorization: 't0ken' }));
        expect(textIn(await all('s'))).toBe('Hello.');
        await expect(connected(url, { headers: { origin: 'https://b.example' } })).rejects.toThrow(
          '403',
        );
      },
      {
        user: ({ headers }) => (headers.get('authorization') === 't0ken' ? 'ann' : undefined),
        options: { connect: 'anyone' },
      },
    ));

  it('is closed for a frame that is too large, or no text', () =>
    serving(
      [],
      async ({ url }) => {
        const big = await connected(url);
        big.say(send('r', 'a', {}, 'x'.repeat(2_000)));
        expect(await big.closed()).toBe(1009);
        const binary = await connected(url);
        binary.socket.send(Buffer.from('{}'));
        expect(await binary.closed()).toBe(1003);
        const broken = await connected(url);
        broken.socket.send(Buffer.from([0xff]), { binary: false });
        expect(await broken.closed()).toBe(1007);
      },
      { maxBytes: 1_000 },
    ));

  it('is pinged, and destroyed if its client does not answer', () =>
    serving(
      [],
      async ({ url }) => {
        const { socket, closed } = await connected(url, { autoPong: false });
        await once(socket, 'ping');
        expect(await closed()).toBe(1006);
      },
      { options: { heartbeatMs: 100 } },
    ));

  it('leaves its calls when it is lost', () => {
    const left$ = new ReplaySubject<void>(1);
    const endless = () =>
      new Observable<ModelChunk>((subscriber) => {
        subscriber.next({ type: 'text', text: 'Once' });
        return () => {
          left$.next();
        };
      });
    return serving(
      [endless],
      async ({ url }) => {
        const { say, frame, socket } = await connected(url);
        say(send('r'));
        await frame('r', 'chunk');
        socket.terminate();
        await firstValueFrom(left$);
      },
      { onDisconnect: 'abort' },
    );
  });

  it('closes with its server: answers end as the protocol requires, and new ones are refused', () => {
    const piece$ = new ReplaySubject<ModelChunk>(Infinity);
    return serving([() => piece$], async ({ url, close$ }) => {
      const { say, frame, all, closed } = await connected(url);
      const idle = await connected(url);
      say(send('r'));
      piece$.next({ type: 'text', text: 'Hello.' });
      await frame('r', 'chunk');
      const closing = lastValueFrom(close$, { defaultValue: undefined });
      say(send('s', 'b'));
      expect((await all('s'))[0]?.['errorText']).toMatch(/restarting/u);
      piece$.next({ type: 'finish', finish: 'stop' });
      piece$.complete();
      const answer = await all('r');
      expect([textIn(answer), answer.at(-1)?.['type']]).toEqual(['Hello.', 'end']);
      expect([await closed(), await idle.closed()]).toEqual([1001, 1001]);
      await closing;
    });
  });

  it('is closed when its server is unsubscribed, and nothing stays', () => {
    const before = timers();
    return serving([() => NEVER], async ({ url }, over$) => {
      const { say, frame, closed } = await connected(url);
      say(send('r'));
      await frame('r', 'chunk');
      over$.next();
      expect(await closed()).toBe(1001);
      await expect(fetch(url)).rejects.toThrow();
      expect(timers()).toBeLessThanOrEqual(before);
    });
  });
});

const upgrade =
  'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';

describe('the heartbeat of a socket', () => {
  /** What a socket of `ws` does at these times; the time between two pings is three frames. */
  const playing = (marble: string, ended: string, bufferedAmount = 0) => {
    const pings: number[] = [];
    marbles(({ cold, time, expectObservable }) => {
      const sent: ((error?: Error) => void)[] = [];
      const fake = Object.assign(new EventEmitter(), {
        bufferedAmount,
        ping: () => pings.push(1),
        send: (_: string, done: (error?: Error) => void) => sent.push(done),
        terminate: () => fake.emit('close'),
      });

      const { ended$, send$ } = chatSocketOf(fake as unknown as WebSocket, time('---|'));
      const played$ = cold(marble).pipe(
        tap((what) => {
          if (what === 's') send$('').subscribe();
          else if (what === 'd') sent.shift()?.();
          else if (what === 'e') sent.shift()?.(new Error('It closes.'));
          else fake.emit({ p: 'pong', m: 'message', c: 'close' }[what] ?? what);
        }),
        ignoreElements(),
      );
      expectObservable(merge(ended$, played$)).toBe(ended);
    });
    return pings.length;
  };

  it('pings after a silence, and destroys the socket after a second one', () => {
    expect(playing('|', '------|')).toBe(1);
  });

  it('continues while there are pongs or messages, and ends with the socket', () => {
    expect(playing('----p-m---p---c|', '---------------|')).toBe(3);
  });

  it('treats a write that had to wait as a sign of life, and no other write', () => {
    expect(playing('s---d|', '----------|', 1)).toBe(2);
    expect(playing('s---d|', '------|', 0)).toBe(1);
    expect(playing('s---e|', '------|', 1)).toBe(1);
  });
});

describe('an HTTP server with sockets', () => {
  /** Attaches to a server of `node:http`. */
  const attached = async (
    respond: ChatServer['respond'],
    test: (url: string, http: Server, over$: Subject<void>) => Promise<void>,
    { sockets = webSocketChat(), isSecure = false } = {},
  ): Promise<void> => {
    const over$ = new Subject<void>();
    const listener = toNodeListener({ respond });
    const http = isSecure ? createTlsServer(selfSigned(), listener) : createServer(listener);
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    const address = http.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    sockets.attach$(http, { respond }).pipe(takeUntil(over$)).subscribe();
    try {
      await test(`http${isSecure ? 's' : ''}://127.0.0.1:${port}`, http, over$);
    } finally {
      over$.next();
      http.close();
      http.closeAllConnections();
    }
  };
  const echo: ChatServer['respond'] = async (request) =>
    request.headers.get('upgrade') === 'websocket'
      ? new Response(null, { status: 204 })
      : new Response(`${request.method} ${await request.text()}.`);

  it('answers upgrade requests for other protocols as it does without sockets', () =>
    attached(echo, async (url) => {
      const head = 'POST /api/other HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n';
      const h2c = 'connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AA\r\n';
      const answer = await raw(url, `${head}${h2c}\r\nHello`, 'POST Hello.');
      expect(answer).toMatch(/^HTTP\/1\.1 200 OK/u);
    }));

  it('does so over TLS, too', () =>
    attached(
      echo,
      async (url) => {
        const headers = { connection: 'Upgrade', upgrade: 'h2c' };
        const asked = tlsRequest(`${url}/api/other`, { headers, rejectUnauthorized: false }).end();
        const [answer] = (await once(asked, 'response')) as [IncomingMessage];
        expect([answer.statusCode, String(await answer.toArray())]).toEqual([200, 'GET .']);
      },
      { isSecure: true },
    ));

  it('leaves other paths to other upgrade listeners', () =>
    attached(echo, async (url, http) => {
      let requests = 0;
      http.on('request', () => (requests += 1));
      http.on('upgrade', ({ url: path }, socket) => {
        if (path === '/own') socket.end('HTTP/1.1 418 Own\r\n\r\n');
      });
      const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${upgrade}\r\n`;
      expect(await raw(url, get('/own'), '\r\n\r\n')).toMatch(/^HTTP\/1\.1 418 /u);
      expect(await raw(url, get('/api/chat'), '\r\n\r\n')).toMatch(/^HTTP\/1\.1 101 /u);
      expect(requests).toBe(0);
    }));

  it('refuses a handshake that is malformed, and one that the server cannot answer', () => {
    const failing: ChatServer['respond'] = () => Promise.reject(new Error('secret'));
    const get = `GET /api/chat HTTP/1.1\r\nhost: localhost\r\n`;
    return attached(echo, async (url) => {
      const bad = 'connection: upgrade\r\nupgrade: websocket\r\n\r\n';
      expect(await raw(url, `${get}${bad}`, '\r\n\r\n')).toMatch(/^HTTP\/1\.1 4/u);
      await attached(failing, async (other) => {
        expect(await raw(other, `${get}${upgrade}\r\n`, '\r\n\r\n')).toMatch(/^HTTP\/1\.1 500 /u);
      });
    });
  });

  it('refuses options that are not right', () => {
    expect(() => webSocketChat({ path: 'chat' })).toThrow(/'path'/u);
    expect(() => webSocketChat({ headers: ['a b'] })).toThrow(/'headers'/u);
    expect(() => webSocketChat({ maxRequests: 0 })).toThrow(/'maxRequests'/u);
    expect(() => webSocketChat({ connect: 'all' as 'user' })).toThrow(/'connect'/u);
  });

  it('keeps no listener, and no connection whose handshake waits, when it is unsubscribed', () =>
    attached(
      () => new Promise(() => undefined),
      async (url, http, over$) => {
        expect(http.listenerCount('upgrade')).toBe(1);
        const { hostname, port } = new URL(url);
        const socket = connect(Number(port), hostname);
        const upgrading = once(http, 'upgrade');
        socket.write(`GET /api/chat HTTP/1.1\r\nhost: localhost\r\n${upgrade}\r\n`);
        await upgrading;
        over$.next();
        await once(socket, 'close');
        expect(http.listenerCount('upgrade')).toBe(0);
      },
    ));

  it('destroys a socket whose client does not complete the close', () =>
    attached(echo, async (url, http, over$) => {
      const upgraded = once(http, 'upgrade');
      const get = `GET /api/chat HTTP/1.1\r\nhost: localhost\r\n${upgrade}\r\n`;
      const { hostname, port } = new URL(url);
      const client = connect(Number(port), hostname);
      client.write(get);
      const [, socket] = await upgraded;
      await once(client, 'data');
      over$.next();
      expect(socket).toMatchObject({ destroyed: true });
      client.destroy();
    }));

  it('completes when it closes and all sockets are closed', async () => {
    const closing$ = new Subject<void>();
    const sockets = webSocketChat();
    const http = createServer().listen(0, '127.0.0.1');
    await once(http, 'listening');
    const done = lastValueFrom(sockets.attach$(http, { respond: echo }, { closing$ }), {
      defaultValue: 'done',
    });
    const address = http.address();
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    const bad = 'connection: upgrade\r\nupgrade: websocket\r\n\r\n';
    await raw(url, `GET /api/chat HTTP/1.1\r\nhost: localhost\r\n${bad}`, '\r\n\r\n');
    const { closed } = await connected(url);
    closing$.next();
    expect(http.listenerCount('upgrade')).toBe(0);
    expect(await closed()).toBe(1001);
    expect(await done).toBe('done');
    http.close();
  });

  it('stops reading the answer of a client that does not read, and continues when it does', () => {
    const piece = new TextEncoder().encode(`data: {"x":"${'x'.repeat(64_000)}"}\n\n`);
    let pulls = 0;
    const pull$ = new Subject<void>();
    const left$ = new ReplaySubject<void>(1);
    const body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          pulls += 1;
          pull$.next();
          controller.enqueue(piece);
        },
        cancel: () => {
          left$.next();
        },
      },
      { highWaterMark: 0 },
    );
    const endless: ChatServer['respond'] = ({ method }) =>
      Promise.resolve(
        method === 'GET'
          ? new Response(null, { status: 204 })
          : new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
      );
    /** Turns of the event loop, until this many have read nothing, or too much was read. */
    const stalled = async (): Promise<number> => {
      let seen = -1;
      for (let turns = 0; turns < 500 && pulls < 2_000; turns += 1) {
        await new Promise(setImmediate);
        if (pulls !== seen) turns = 0;
        seen = pulls;
      }
      return pulls;
    };
    return attached(endless, async (url) => {
      const { socket, say, frame } = await connected(url);
      say(send('r'));
      await frame('r', 'start');
      socket.pause();
      const first = await stalled();
      // What the kernel buffers, of 128 MB.
      expect(first).toBeLessThan(500);
      socket.resume();
      await firstValueFrom(pull$);
      socket.terminate();
      await firstValueFrom(left$);
    });
  });
});
