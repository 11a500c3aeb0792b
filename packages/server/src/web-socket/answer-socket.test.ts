import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, type ModelChunk } from 'millrace';
import { type ScriptedAnswer, scriptedModel, text } from 'millrace/testing';
import fc from 'fast-check';
import {
  filter,
  finalize,
  firstValueFrom,
  NEVER,
  Observable,
  of,
  ReplaySubject,
  Subject,
  take,
  takeWhile,
  toArray,
} from 'rxjs';
import { chatServer, type ChatServer, type ChatServerOptions } from '../chat/index.js';
import { answerSocket$, type AnswerSocketOptions } from './index.js';

const opened: { unsubscribe: () => void }[] = [];
afterEach(() => {
  opened.splice(0).forEach((it) => {
    it.unsubscribe();
  });
});

type Frame = Readonly<Record<string, unknown>>;
type Respond = ChatServer['respond'];

const serverOf = (answers: readonly ScriptedAnswer[], options: ChatServerOptions = {}) => {
  const server = chatServer(
    createAgent({ name: 'helper', model: scriptedModel(...answers) }),
    options,
  );
  opened.push({ unsubscribe: () => void server.close({ timeoutMs: 0 }) });
  return server.respond;
};

/** A socket in this process. */
const connect = (
  respond: Respond,
  options: AnswerSocketOptions = {},
  handshake = new Request('http://localhost/api/chat', {
    headers: { upgrade: 'websocket', connection: 'upgrade', cookie: 'of=ann' },
  }),
) => {
  const message$ = new Subject<unknown>();
  const frame$ = new ReplaySubject<Frame>(Infinity);
  const closed$ = new ReplaySubject<readonly [code: number, reason: string]>(1);
  const over$ = new ReplaySubject<void>(1);
  /** Emits when a client that reads slowly has read. */
  let read$: Observable<unknown> = of(true);
  const socket = {
    message$,
    send$: (sent: string) =>
      new Observable<never>((subscriber) => {
        frame$.next(JSON.parse(sent) as Frame);
        return read$.subscribe(() => {
          subscriber.complete();
        });
      }),
    close: (code: number, reason: string) => {
      closed$.next([code, reason]);
      message$.complete();
    },
  };
  const answers = answerSocket$(socket, handshake, { respond }, options).subscribe({
    complete: () => {
      frame$.complete();
      over$.next();
    },
  });
  opened.push(answers);
  const framesOf = (requestId: string) =>
    frame$.pipe(filter((frame) => frame['requestId'] === requestId));
  return {
    message$,
    frame$,
    answers,
    say: (frame: object) => {
      message$.next(JSON.stringify(frame));
    },
    readSlowly: (each$: Observable<unknown>) => {
      read$ = each$;
    },
    frame: (requestId: string, type: string) =>
      firstValueFrom(framesOf(requestId).pipe(filter((frame) => frame['type'] === type))),
    closed: () => firstValueFrom(closed$),
    over: () => firstValueFrom(over$),
    /** The frames of a request, up to its last one. */
    all: (requestId: string) =>
      firstValueFrom(
        framesOf(requestId).pipe(
          takeWhile(({ type }) => type === 'start' || type === 'chunk', true),
          toArray(),
        ),
      ),
  };
};

const question = (said: string) => ({
  id: 'q',
  role: 'user',
  parts: [{ type: 'text', text: said }],
});

const send = (requestId: string, id = 'a', others: object = {}) => ({
  type: 'send',
  requestId,
  id,
  trigger: 'submit-message',
  messages: [question('Hi')],
  headers: {},
  body: {},
  ...others,
});

const resume = (requestId: string, id = 'a') => ({
  type: 'resume',
  requestId,
  id,
  headers: {},
  body: {},
});

const chunksIn = (frames: readonly Frame[]) =>
  frames.filter(({ type }) => type === 'chunk').map(({ chunk }) => chunk as Frame);

const textIn = (frames: readonly Frame[]): string =>
  chunksIn(frames)
    .map(({ type, delta }) => (type === 'text-delta' ? String(delta) : ''))
    .join('');

/** A model that answers piece by piece. */
const held = () => {
  const piece$ = new ReplaySubject<ModelChunk>(Infinity);
  const left$ = new ReplaySubject<void>(1);
  return {
    answer: () => piece$.pipe(finalize(() => left$.next())),
    say: (said: string) => {
      piece$.next({ type: 'text', text: said });
    },
    end: () => {
      piece$.next({ type: 'finish', finish: 'stop' });
      piece$.complete();
    },
    left: () => firstValueFrom(left$),
  };
};

/** A server that never answers, or only on demand, and the requests that it got. */
const heldServer = () => {
  const asked$ = new ReplaySubject<Request>(1);
  const response$ = new ReplaySubject<Response>(1);
  const respond: Respond = (request) => {
    asked$.next(request);
    return firstValueFrom(response$);
  };
  return { respond, response$, asked$, asked: () => firstValueFrom(asked$) };
};

/** An endless stream of events that counts how often it was read. */
const endless = () => {
  const seen = { pulls: 0 };
  const cancelled$ = new ReplaySubject<void>(1);
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        seen.pulls += 1;
        controller.enqueue(new TextEncoder().encode(`data: {"n":${seen.pulls}}\n\n`));
      },
      cancel: () => {
        cancelled$.next();
      },
    },
    { highWaterMark: 0 },
  );
  const headers = { 'content-type': 'text/event-stream' };
  return {
    seen,
    response: () => new Response(body, { headers }),
    cancelled: () => firstValueFrom(cancelled$),
  };
};

/** Some turns of the event loop: what happens without a wait has happened. */
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
};

const refusing =
  (status: number, body: object): Respond =>
  () =>
    Promise.resolve(Response.json(body, { status }));

describe('an answer over a socket', () => {
  it('has a start, the chunks of the HTTP stream numbered from 0, and an end', async () => {
    const respond = serverOf([[text('Hello'), text(' Ann.')]]);
    const { say, all } = connect(respond);
    say(send('r'));
    const frames = await all('r');
    const types = frames.map(({ type }) => type);
    expect([types[0], types.at(-1)]).toEqual(['start', 'end']);
    const numbers = frames.flatMap(({ sequence }) => (sequence === undefined ? [] : [sequence]));
    expect(numbers).toEqual(numbers.map((_, at) => at));
    expect(textIn(frames)).toBe('Hello Ann.');
    const [first, last] = [chunksIn(frames)[0], chunksIn(frames).at(-1)];
    expect([first?.['type'], last?.['type']]).toEqual(['start', 'finish']);
  });

  it('keeps line separators, which end no line of a stream', async () => {
    const { say, all } = connect(serverOf([[text('one\u2028two\u2029data: three')]]));
    say(send('r'));
    expect(textIn(await all('r'))).toBe('one\u2028two\u2029data: three');
  });

  it('can be joined from its start while it runs, and is not there before and after', async () => {
    const { answer, say: says, end } = held();
    const respond = serverOf([answer]);
    const first = connect(respond);
    first.say(resume('r0'));
    expect(await first.all('r0')).toEqual([{ type: 'no-active', requestId: 'r0' }]);
    first.say(send('r1'));
    says('Once ');
    await first.frame('r1', 'chunk');
    first.message$.complete();

    const second = connect(respond);
    second.say(resume('r2'));
    await second.frame('r2', 'start');
    says('more.');
    end();
    const frames = await second.all('r2');
    expect(textIn(frames)).toBe('Once more.');
    expect(frames.find(({ type }) => type === 'chunk')?.['sequence']).toBe(0);
    second.say(resume('r3'));
    expect(await second.all('r3')).toEqual([{ type: 'no-active', requestId: 'r3' }]);
  });

  it('runs beside others, and none waits for another', async () => {
    const models = [held(), held()];
    const { say, frame, all } = connect(serverOf(models.map(({ answer }) => answer)));
    say(send('a', 'a'));
    await frame('a', 'start');
    say(send('b', 'b'));
    await frame('b', 'start');
    models[1]?.say('Two.');
    models[1]?.end();
    expect(textIn(await all('b'))).toBe('Two.');
    models[0]?.say('One.');
    models[0]?.end();
    expect(textIn(await all('a'))).toBe('One.');
  });

  it('ends when its client aborts it, and the others continue', async () => {
    const models = [held(), held()];
    const respond = serverOf(
      models.map(({ answer }) => answer),
      { onDisconnect: 'abort' },
    );
    const { say, frame, all, frame$ } = connect(respond);
    say(send('a', 'a'));
    await frame('a', 'start');
    say(send('b', 'b'));
    await frame('b', 'start');
    say({ type: 'abort', requestId: 'a' });
    await models[0]?.left();
    models[1]?.say('Two.');
    models[1]?.end();
    expect(textIn(await all('b'))).toBe('Two.');
    const ends: Frame[] = [];
    frame$.subscribe((it) => ends.push(it)).unsubscribe();
    expect(ends.filter(({ requestId }) => requestId === 'a').at(-1)?.['type']).not.toBe('end');
  });

  it('is abandoned by all requests of a lost socket', async () => {
    const models = [held(), held()];
    const respond = serverOf(
      models.map(({ answer }) => answer),
      { onDisconnect: 'abort' },
    );
    const { say, frame, message$, over } = connect(respond);
    say(send('a', 'a'));
    say(send('b', 'b'));
    await Promise.all([frame('a', 'start'), frame('b', 'start')]);
    message$.complete();
    await Promise.all(models.map(({ left }) => left()));
    await over();
  });

  it('is not read if its client has left before the response came', async () => {
    const { respond, response$, asked } = heldServer();
    const { response, seen, cancelled } = endless();
    const { say, frame$ } = connect(respond);
    say(send('r'));
    const request = await asked();
    say({ type: 'abort', requestId: 'r' });
    expect(request.signal.aborted).toBe(true);
    response$.next(response());
    await cancelled();
    expect(seen.pulls).toBe(0);
    frame$.subscribe((frame) => expect(frame).toBe(undefined));
  });

  it('is not read by a client that reads nothing, and left when it goes', async () => {
    const { response, seen, cancelled } = endless();
    const { say, readSlowly, frame } = connect(() => Promise.resolve(response()));
    readSlowly(NEVER);
    say(send('r'));
    await frame('r', 'start');
    await settled();
    expect(seen.pulls).toBe(0);
    say({ type: 'abort', requestId: 'r' });
    await cancelled();
  });

  it('is read one piece at a time, as fast as its client reads', async () => {
    const { response, seen, cancelled } = endless();
    const { say, readSlowly, frame, message$ } = connect(() => Promise.resolve(response()));
    const read$ = new Subject<void>();
    readSlowly(read$.pipe(take(1)));
    say(send('r'));
    await frame('r', 'start');
    for (const pulls of [1, 2, 3]) {
      read$.next();
      await settled();
      expect(seen.pulls).toBe(pulls);
    }
    message$.complete();
    await cancelled();
  });

  it('is an error with the text of the refusal', async () => {
    for (const status of [401, 413, 429, 503]) {
      const { say, all } = connect(refusing(status, { error: `No: ${status}.`, code: 'x' }));
      say(send('r'));
      say(resume('s'));
      const errorText = `No: ${status}.`;
      expect(await all('r')).toEqual([{ type: 'error', requestId: 'r', errorText }]);
      expect(await all('s')).toEqual([{ type: 'error', requestId: 's', errorText }]);
    }
  });

  it('does not show the error text of a server that violates the protocol', async () => {
    const broken = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        controller.error(new Error('secret'));
      },
    });
    const headers = { 'content-type': 'text/event-stream' };
    const servers: readonly Respond[] = [
      () => Promise.reject(new Error('secret')),
      () => Promise.resolve(new Response('secret', { status: 500 })),
      () => Promise.resolve(new Response(broken, { headers })),
      () => Promise.resolve(Response.json({ messages: ['secret'] })),
    ];
    for (const respond of servers) {
      const { say, frame } = connect(respond);
      say(send('r'));
      const error = await frame('r', 'error');
      expect(error['errorText']).toBe('The server failed.');
    }
  });
});

describe('the request of a frame', () => {
  const handshake = new Request('https://a.example/api/chat?approvals=token', {
    headers: {
      upgrade: 'websocket',
      'sec-websocket-key': 'k',
      'sec-websocket-protocol': 'chat, t0ken',
      cookie: 'of=ann',
      origin: 'https://a.example',
      'x-user': 'ann',
    },
  });

  it('has the query and the headers of the handshake, without those of the connection', async () => {
    const { respond, asked } = heldServer();
    connect(respond, {}, handshake).say(send('r', 'a', { body: { more: 1, id: 'other' } }));
    const { url, method, headers } = await asked();
    expect([method, url]).toEqual(['POST', 'https://a.example/api/chat?approvals=token']);
    expect(Object.fromEntries(headers)).toEqual({
      'content-type': 'application/json',
      'sec-websocket-protocol': 'chat, t0ken',
      cookie: 'of=ann',
      origin: 'https://a.example',
      'x-user': 'ann',
    });
  });

  it('has the body that HTTP has', async () => {
    const { respond, asked } = heldServer();
    connect(respond, {}, handshake).say(send('r', 'a', { body: { more: 1, id: 'other' } }));
    expect(await (await asked()).json()).toEqual({
      more: 1,
      id: 'a',
      messages: [question('Hi')],
      trigger: 'submit-message',
    });
  });

  it('joins by the path of the conversation', async () => {
    const { respond, asked } = heldServer();
    connect(respond, {}, handshake).say(resume('r', 'a:b@c'));
    const { url, method } = await asked();
    expect([method, url]).toEqual([
      'GET',
      'https://a.example/api/chat/a%3Ab%40c/stream?approvals=token',
    ]);
  });

  it('takes authorization from the frame, or the headers that are named, and replaces none', async () => {
    const headers = {
      Authorization: 'Bearer t',
      'X-Tenant': 't',
      'x-user': 'eve',
      cookie: 'of=eve',
      origin: 'https://b.example',
    };
    const seen = async (options: AnswerSocketOptions) => {
      const { respond, asked } = heldServer();
      connect(respond, options, handshake).say(send('r', 'a', { headers }));
      const { headers: given } = await asked();
      return ['authorization', 'x-tenant', 'x-user', 'cookie', 'origin'].map((it) => given.get(it));
    };
    const own = ['ann', 'of=ann', 'https://a.example'];
    expect(await seen({})).toEqual(['Bearer t', null, ...own]);
    const named = ['x-tenant', 'x-user', 'cookie', 'origin'];
    expect(await seen({ headers: named })).toEqual([null, 't', ...own]);
  });
});

describe('a hostile client', () => {
  const never: Respond = () => new Promise(() => undefined);

  it('is closed if it sends what has no answer', async () => {
    const cases: readonly (readonly [unknown, number])[] = [
      [undefined, 1003],
      ['', 1007],
      ['{', 1007],
      ['null', 1007],
      ['[]', 1007],
      ['{}', 1008],
      ['{"type":"abort"}', 1008],
      ['{"type":"send","requestId":""}', 1008],
      [JSON.stringify({ type: 'send', requestId: 'r'.repeat(513) }), 1008],
    ];
    for (const [message, code] of cases) {
      const { message$, closed, over } = connect(never);
      message$.next(message);
      expect([message, (await closed())[0]]).toEqual([message, code]);
      await over();
    }
  });

  it('gets an error for a frame that is malformed, and may send others', async () => {
    const { say, all } = connect(serverOf([[text('Hello.')]]));
    const frames = [
      { type: 'other', id: 'a' },
      { ...send('0'), id: '..' },
      { ...send('0'), id: 7 },
      { ...send('0'), headers: { 'a b': 'c' } },
      { ...send('0'), headers: { a: 7 } },
      { ...send('0'), body: 'text' },
      { ...send('0'), messages: 'none' },
      { ...send('0'), messages: [{}] },
      { ...resume('0'), id: 'a/b' },
      { ...resume('0'), id: '.' },
      { ...resume('0'), id: '..' },
      { ...resume('0'), lastSequence: 3 },
    ];
    for (const [at, frame] of frames.entries()) {
      say({ ...frame, requestId: `f${at}` });
      const errorText = expect.stringMatching(/^The request is malformed: ./);
      expect(await all(`f${at}`)).toEqual([{ type: 'error', requestId: `f${at}`, errorText }]);
    }
    say({ type: 'abort', requestId: 'unknown' });
    say(send('r'));
    expect(textIn(await all('r'))).toBe('Hello.');
  });

  it('may have a limited number of open requests', async () => {
    const { say, all, answers, closed } = connect(never, { maxRequests: 2 });
    ['a', 'b', 'c'].forEach((requestId) => {
      say(send(requestId));
    });
    const errorText = 'Too many requests at the same time.';
    expect(await all('c')).toEqual([{ type: 'error', requestId: 'c', errorText }]);
    say({ type: 'abort', requestId: 'a' });
    say(send('d'));
    say(send('e'));
    expect((await all('e'))[0]?.['type']).toBe('error');
    expect(answers.closed).toBe(false);
    say(send('d'));
    expect((await closed())[0]).toBe(1008);
  });

  it('is closed if it does not read its refusals', async () => {
    const { message$, readSlowly, closed, frame$ } = connect(never, { maxRequests: 2 });
    readSlowly(NEVER);
    const sent: Frame[] = [];
    frame$.subscribe((frame) => sent.push(frame));
    for (let at = 0; at < 9; at += 1) {
      message$.next(JSON.stringify({ type: 'other', requestId: `r${at}` }));
    }
    expect((await closed())[0]).toBe(1008);
    expect(sent).toHaveLength(2);
  });

  it('is answered or closed, for any bytes, and never breaks the server', () => {
    const field = fc.oneof(fc.jsonValue(), fc.constantFrom('send', 'resume', 'abort', 'a', '..'));
    const keys = ['type', 'requestId', 'id', 'headers', 'body', 'messages', 'lastSequence'];
    const frame = fc.record(Object.fromEntries(keys.map((key) => [key, field])), {
      requiredKeys: [],
    });
    const sane = frame.map((it) => ({ ...it, requestId: 'r' }));
    const message = fc.oneof(
      fc.string(),
      fc.oneof(frame, sane).map((it) => JSON.stringify(it)),
    );
    return fc.assert(
      fc.asyncProperty(fc.array(message, { maxLength: 5 }), async (messages) => {
        const seen: string[] = [];
        const respond: Respond = ({ url, method }) => {
          seen.push(`${method} ${new URL(url).pathname}`);
          return Promise.resolve(new Response(null, { status: 204 }));
        };
        const { message$, answers, frame$ } = connect(respond);
        const types: unknown[] = [];
        frame$.subscribe(({ type }) => types.push(type));
        messages.forEach((it) => {
          message$.next(it);
        });
        await settled();
        expect(types.every((it) => it === 'error' || it === 'no-active')).toBe(true);
        const routes = /^(?:POST \/api\/chat|GET \/api\/chat\/[^/]+\/stream)$/u;
        expect(seen.filter((it) => !routes.test(it))).toEqual([]);
        answers.unsubscribe();
      }),
    );
  });
});

describe('a socket', () => {
  it('that closes reads no more frames, waits for its answers, and says that the server goes', async () => {
    const { answer, say: says, end } = held();
    const closing$ = new Subject<void>();
    const { say, frame, all, closed, over, frame$ } = connect(serverOf([answer]), { closing$ });
    say(send('r'));
    await frame('r', 'start');
    closing$.next();
    say(send('late'));
    says('Hello.');
    end();
    expect(textIn(await all('r'))).toBe('Hello.');
    expect((await closed())[0]).toBe(1001);
    await over();
    expect(
      (await firstValueFrom(frame$.pipe(toArray()))).map((it) => it['requestId']),
    ).not.toContain('late');
  });

  it('leaves nothing when it is unsubscribed', async () => {
    const { response, cancelled } = endless();
    const { say, frame, answers, message$ } = connect(() => Promise.resolve(response()));
    say(send('r'));
    await frame('r', 'chunk');
    expect(message$.observed).toBe(true);
    answers.unsubscribe();
    await cancelled();
    expect(message$.observed).toBe(false);
  });
});
