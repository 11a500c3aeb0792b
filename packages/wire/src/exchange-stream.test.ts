import { describe, expect, it, jest } from '@jest/globals';
import { createDemand, MillraceError, type ModelChunk } from 'millrace';
import { lentContext } from 'millrace/testing';
import fc from 'fast-check';
import { take, VirtualTimeScheduler } from 'rxjs';
import type { Exchange } from './exchange.js';
import { exchange$ } from './exchange-stream.js';
import { failure } from './failure.js';
import { at } from './paths.js';
import {
  bodyOf,
  chunksOf,
  doneEvent,
  errorOf,
  event,
  exchangeWith,
  finishEvent,
  outcomeOf,
  respond,
  textEvent,
  usageEvent,
} from './wire.test-support.js';

const hello = { type: 'text', text: 'Hello' };
const finish = { type: 'finish', finish: 'stop' };
const usage = { type: 'usage', usage: { outputTokens: 1 } };

const answer = textEvent('Hello') + finishEvent + usageEvent + doneEvent;

/** Lets all promises settle that wait for nothing but each other. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('exchange$', () => {
  it('emits the chunks of an answer, and completes with its end', async () => {
    expect(await chunksOf(exchangeWith(respond([answer])))).toEqual([hello, usage, finish]);
  });

  it('is cold: each subscription sends', async () => {
    const send = jest.fn(respond([answer]));
    const answer$ = exchange$(exchangeWith(send), lentContext());
    expect(send).not.toHaveBeenCalled();
    answer$.subscribe();
    answer$.subscribe();
    await settle();
    expect(send).toHaveBeenCalledTimes(2);
  });

  it('hands the name of an event on', async () => {
    const read = jest.fn<Exchange['read']>(() => []);
    await outcomeOf(exchangeWith(respond(['event: ping\ndata: 1\n\n']), { read }));
    expect(read).toHaveBeenCalledWith({ name: 'ping', data: 1 });
  });

  it('reads a good stream with any content type', async () => {
    const send = respond([answer], { headers: { 'content-type': 'text/html' } });
    expect(await chunksOf(exchangeWith(send))).toHaveLength(3);
  });

  it('X6: reads any number of events at a time', async () => {
    const pieces = textEvent('x').repeat(200_000) + finishEvent;
    expect(await chunksOf(exchangeWith(respond([pieces])))).toHaveLength(200_001);
  });

  it('X1: reads an answer that comes whole', async () => {
    const send = respond([' \n', JSON.stringify({ chunks: [hello, finish] })]);
    expect(await chunksOf(exchangeWith(send))).toEqual([hello, finish]);
  });

  it.each([
    ['nothing', [], true, 'empty'],
    ['blanks', [' \r\n', '\n'], true, 'empty'],
    ['comments', [': hi\n\n'], true, 'incomplete'],
    ['text', ['Bad gateway'], true, 'incomplete'],
    ['no finish', [textEvent('Hello')], true, 'incomplete'],
    ['no finish, but a [DONE]', [textEvent('Hello') + doneEvent], true, 'incomplete'],
    ['a half event at the end', [textEvent('Hello') + 'data: {"type":"fin'], true, 'incomplete'],
    ['HTML', ['\n<!doctype html>'], false, 'base URL'],
    ['JSON that is no answer', ['{"hello":"world"}'], false, 'not an answer'],
    ['half a JSON', ['{"hello":'], false, 'neither a stream nor JSON'],
    ['an event that is no JSON', ['data: {"type":\n\n'], false, 'not JSON'],
  ])('X1: %s is an invalid response', async (_, pieces, retryable, words) => {
    const error = await errorOf(exchangeWith(respond(pieces)));
    expect(error).toMatchObject({ code: 'invalidResponse', retryable });
    expect(error.message).toContain(words);
  });

  it('X1: a body that ends within a character is incomplete', async () => {
    const cut = [JSON.stringify({ chunks: [hello, finish] }), Uint8Array.of(0xe2, 0x82)];
    expect(await errorOf(exchangeWith(respond(cut)))).toMatchObject({ code: 'invalidResponse' });
  });

  it('X1: a page of HTML is reported with its content type, and left immediately', async () => {
    const onCancel = jest.fn<() => void>();
    const body = bodyOf(['<html>', '<body>'], onCancel);
    const headers = { 'content-type': 'text/html; charset=utf-8' };
    const send = () => Promise.resolve(new Response(body, { headers }));
    expect((await errorOf(exchangeWith(send))).message).toContain('text/html; charset=utf-8');
    expect(onCancel).toHaveBeenCalledTimes(1);
  });

  it('X1: what a reader trips over is an invalid response', async () => {
    const read = () => {
      throw new TypeError('x is undefined');
    };
    const { code, cause } = await errorOf(exchangeWith(respond([answer]), { read }));
    expect(code).toBe('invalidResponse');
    expect(cause).toMatchObject({ name: 'TypeError', message: 'x is undefined' });
  });

  it('X1: a connection that ends early is a connection error, after what had come', async () => {
    const broken = Object.assign(new TypeError('terminated'), {
      cause: Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' }),
    });
    const { chunks, error } = await outcomeOf(exchangeWith(respond([textEvent('Hello'), broken])));
    expect(chunks).toEqual([hello]);
    expect(error).toMatchObject({ code: 'connection', retryable: true });
  });

  it('reads an event at the very end that lacks its blank line', async () => {
    const send = respond([textEvent('Hello'), finishEvent.trimEnd()]);
    expect(await chunksOf(exchangeWith(send))).toEqual([hello, finish]);
  });

  it('passes events without data over', async () => {
    const send = respond(['data:\n\ndata: \n\n', answer]);
    expect(await chunksOf(exchangeWith(send))).toHaveLength(3);
  });

  it('names the request in each error of its response', async () => {
    const headers = { 'x-request-id': 'req_1' };
    expect(await errorOf(exchangeWith(respond(['<'], { headers })))).toMatchObject({
      requestId: 'req_1',
    });
  });

  it('X1: ends any bytes with an answer or a typed error', async () => {
    const line = fc.oneof(
      fc.string(),
      fc.constantFrom('', '[DONE]', 'event: error', 'data: {', '<', '{', ': x', '\0', '\r'),
      fc.json().map((json) => `data: ${json}`),
      fc
        .constantFrom('text', 'toolCall', 'usage', 'finish', 'block')
        .chain((type) =>
          fc
            .dictionary(fc.constantFrom('text', 'json', 'input', 'id', 'block'), fc.jsonValue())
            .map((fields) => `data: ${JSON.stringify({ ...fields, type })}`),
        ),
    );
    const text = fc.array(line).map((lines) => new TextEncoder().encode(lines.join('\n\n')));
    const property = fc.asyncProperty(fc.oneof(text, fc.uint8Array()), async (bytes) => {
      const { chunks, error } = await outcomeOf(exchangeWith(respond([bytes])));
      expect(error !== undefined || chunks.some(({ type }) => type === 'finish')).toBe(true);
    });
    await fc.assert(property, { numRuns: 150 });
  });

  it('emits what came before a fault in the same read', async () => {
    const { chunks, error } = await outcomeOf(
      exchangeWith(respond([textEvent('Hello') + event({ error: { type: 'overloaded_error' } })])),
    );
    expect(chunks).toEqual([hello]);
    expect(error).toMatchObject({ code: 'server', retryable: true });
  });

  it.each([
    [
      'an error event',
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n',
    ],
    ['an error event of plain text', 'event: error\ndata: upstream has gone\n\n'],
    ['an error as data', event({ error: { message: 'oops', code: 502 } })],
    ['a whole body', JSON.stringify({ error: { type: 'server_error' } })],
  ])('X4: %s inside a good response is what its status would be', async (_, body) => {
    const error = await errorOf(exchangeWith(respond([body])));
    expect(error).toMatchObject({ code: 'server', retryable: true });
    expect(error.status).toBeUndefined();
  });

  it('takes `error: null` for none', async () => {
    const send = respond([event({ ...hello, error: null }) + finishEvent]);
    expect(await chunksOf(exchangeWith(send))).toHaveLength(2);
  });

  it('passes on what a reader throws on purpose', async () => {
    const read = () => {
      throw failure('Acme', { code: 'content_filter' });
    };
    expect(await errorOf(exchangeWith(respond([answer]), { read }))).toMatchObject({
      code: 'refused',
    });
  });

  it('X4: reads the error of a response with another status than success', async () => {
    const send = respond(['{"error":{"message":"slow down","type":"rate_limit_error"}}'], {
      status: 429,
      headers: { 'retry-after': '2.5', 'request-id': 'req_2' },
    });
    expect(await errorOf(exchangeWith(send))).toMatchObject({
      code: 'rateLimited',
      retryable: true,
      status: 429,
      retryAfterMs: 2_500,
      requestId: 'req_2',
    });
  });
});

describe('exchange$, after the first finish', () => {
  it('X5: content counts, and the last finish', async () => {
    const late = [textEvent('late'), event({ type: 'finish', finish: 'length' }), usageEvent];
    expect(
      await chunksOf(exchangeWith(respond([textEvent('Hello'), finishEvent, ...late]))),
    ).toEqual([hello, { type: 'text', text: 'late' }, usage, { type: 'finish', finish: 'length' }]);
  });

  it('has a complete answer if the connection is lost', async () => {
    const send = respond([textEvent('Hello') + finishEvent, new TypeError('terminated')]);
    expect(await chunksOf(exchangeWith(send))).toEqual([hello, finish]);
  });

  it.each([
    ['an error event', 'event: error\ndata: {"error":{"type":"server_error"}}\n\n', 'server'],
    ['an error as data', event({ error: { message: 'no' } }), 'server'],
    ['an event that is not JSON', 'data: {\n\n', 'invalidResponse'],
  ])('X5: fails with %s', async (_, piece, code) => {
    const send = respond([textEvent('Hello') + finishEvent, piece, doneEvent]);
    expect(await errorOf(exchangeWith(send))).toMatchObject({ code });
    const afterDone = respond([textEvent('Hello') + finishEvent + doneEvent, piece]);
    expect(await chunksOf(exchangeWith(afterDone))).toEqual([hello, finish]);
  });

  it('I18: waits 2 seconds of the scheduler for a server that does not end', async () => {
    const scheduler = new VirtualTimeScheduler();
    const onCancel = jest.fn<() => void>();
    const stalled = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(finishEvent)),
      cancel: onCancel,
    });
    const complete = jest.fn();
    exchange$(
      exchangeWith(() => Promise.resolve(new Response(stalled))),
      lentContext({ scheduler }),
    ).subscribe({ complete });
    await settle();
    expect(complete).not.toHaveBeenCalled();
    scheduler.flush();
    expect(scheduler.now()).toBe(2_000);
    expect(complete).toHaveBeenCalledTimes(1);
    expect(onCancel).toHaveBeenCalledTimes(1);
  });

  it.each<[string, string, Partial<Exchange>]>([
    ['says that it is done', doneEvent, {}],
    [
      'says so in its own way',
      event({ over: true }),
      { isLast: ({ data }) => at(data, 'over') === true },
    ],
  ])('I18: waits 50 ms for a server that %s', async (_, last, reader) => {
    const scheduler = new VirtualTimeScheduler();
    const open = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const text = textEvent('a') + finishEvent + usageEvent + last;
        controller.enqueue(new TextEncoder().encode(text));
      },
    });
    const exchange = exchangeWith(() => Promise.resolve(new Response(open)), {
      read: ({ data }) => (at(data, 'over') === true ? [] : [data as ModelChunk]),
      ...reader,
    });
    const outcome = outcomeOf(exchange, { scheduler });
    await settle();
    scheduler.flush();
    expect((await outcome).chunks.map(({ type }) => type)).toEqual(['text', 'usage', 'finish']);
    expect(scheduler.now()).toBe(50);
  });
});

describe('exchange$, when it is left', () => {
  it('I5: aborts in the same tick, and cancels a body that does not hear of it', async () => {
    let heard: AbortSignal | undefined;
    const onCancel = jest.fn<() => void>();
    const stalled = new ReadableStream<Uint8Array>({ cancel: onCancel });
    const subscription = exchange$(
      exchangeWith((signal) => {
        heard = signal;
        return Promise.resolve(new Response(stalled));
      }),
      lentContext(),
    ).subscribe();
    await settle();
    subscription.unsubscribe();
    expect(heard?.aborted).toBe(true);
    expect(onCancel).toHaveBeenCalledTimes(1);
  });

  it('cancels the body of a response that comes too late', async () => {
    const onCancel = jest.fn<() => void>();
    let arrive: (response: Response) => void = () => undefined;
    const subscription = exchange$(
      exchangeWith(() => new Promise((resolve) => (arrive = resolve))),
      lentContext(),
    ).subscribe();
    await settle();
    subscription.unsubscribe();
    arrive(new Response(new ReadableStream({ cancel: onCancel })));
    await settle();
    expect(onCancel).toHaveBeenCalledTimes(1);
  });

  it('X1: rejects nowhere when the request or the body fails after it', async () => {
    const unheard = jest.fn();
    process.on('unhandledRejection', unheard);
    let fail: (error: Error) => void = () => undefined;
    const pending = exchange$(
      exchangeWith(() => new Promise((_, reject) => (fail = reject))),
      lentContext(),
    ).subscribe();
    let failBody: (error: Error) => void = () => undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        failBody = (error) => controller.error(error);
      },
      cancel: () => Promise.reject(new Error('cannot cancel')),
    });
    const reading = exchange$(
      exchangeWith(() => Promise.resolve(new Response(body))),
      lentContext(),
    ).subscribe();
    await settle();
    pending.unsubscribe();
    reading.unsubscribe();
    fail(new Error('aborted'));
    failBody(new Error('aborted'));
    await settle();
    await settle();
    process.off('unhandledRejection', unheard);
    expect(unheard).not.toHaveBeenCalled();
  });

  it('closes the body after a reader that has enough', async () => {
    const onCancel = jest.fn<() => void>();
    const pieces = Array.from({ length: 10 }, () => textEvent('x'));
    exchange$(
      exchangeWith(() => Promise.resolve(new Response(bodyOf(pieces, onCancel)))),
      lentContext(),
    )
      .pipe(take(2))
      .subscribe();
    await settle();
    expect(onCancel).toHaveBeenCalledTimes(1);
  });
});

describe('exchange$ and demand', () => {
  it('I16: reads nothing while demand is closed', async () => {
    const demand = createDemand(4);
    let pulled = 0;
    const pieces = (function* () {
      for (; pulled < 50; pulled += 1) yield textEvent('x');
      yield finishEvent;
    })();
    const complete = jest.fn();
    exchange$(exchangeWith(respond(pieces)), lentContext({ demand })).subscribe({
      next: () => {
        if (pulled === 9) demand.backlog(4);
      },
      complete,
    });
    await settle();
    expect(pulled).toBe(9);
    demand.backlog(0);
    await settle();
    expect(complete).toHaveBeenCalledTimes(1);
  });
});

describe('exchange$ and chunking', () => {
  const chunk = fc.oneof(
    fc.record({ type: fc.constant('text'), text: fc.string({ unit: 'binary', maxLength: 12 }) }),
    fc.record({ type: fc.constant('unheard'), no: fc.jsonValue({ maxDepth: 1 }) }),
  );
  const ending = fc.constantFrom('\n', '\r', '\r\n');
  const noise = fc.constantFrom('', ': comment', 'id: 7', 'retry: 10', 'unknown: field', 'event');
  const spread = fc.boolean();
  const cuts = fc.array(fc.nat(), { maxLength: 60 });

  /** Writes an event with noise around it, its data on one line or on several. */
  const written = (data: unknown, noiseLine: string, many: boolean): readonly string[] => [
    ...(noiseLine === '' ? [] : [noiseLine]),
    ...JSON.stringify(data, null, many ? 1 : 0)
      .split('\n')
      .map((line, at) => (at % 2 === 0 ? `data: ${line}` : `data:${line}`)),
    '',
  ];

  const cutUp = (bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] => {
    const at = [...new Set(places.map((place) => place % bytes.length))].sort((a, b) => a - b);
    return [...at, bytes.length].map((end, index) => bytes.slice(at[index - 1] ?? 0, end));
  };

  it('X5: any chunking, line ending, comment, BOM and multi-line data gives the same events', async () => {
    const property = fc.asyncProperty(
      fc.array(fc.tuple(chunk, noise, spread, ending), { maxLength: 8 }),
      fc.boolean(),
      fc.oneof(cuts, fc.constant('all' as const)),
      async (events, bom, places) => {
        const lines = events.flatMap(([data, noiseLine, many, end]) =>
          written(data, noiseLine, many).map((line) => line + end),
        );
        const text = `${bom ? '\uFEFF' : ''}${lines.join('')}${finishEvent}`;
        const bytes = new TextEncoder().encode(text);
        const all = places === 'all' ? Array.from(bytes, (_, at) => at) : places;
        const expected = events.map(([data]) => data).filter(({ type }) => type === 'text');
        const sent = JSON.parse(JSON.stringify(expected)) as unknown[];
        expect(await chunksOf(exchangeWith(respond(cutUp(bytes, all))))).toEqual([...sent, finish]);
      },
    );
    await fc.assert(property, { numRuns: 100 });
  });
});

describe('exchange$ and caps', () => {
  const toolCall = (fields: object): string => event({ type: 'toolCall', ...fields });

  it.each([
    ['textLength', { textLength: 8 }, [textEvent('12345'), textEvent('6789')]],
    ['eventLength', { eventLength: 100 }, ['data: ', 'x'.repeat(60), 'x'.repeat(60)]],
    ['eventLength', { eventLength: 100 }, [textEvent('x'.repeat(100))]],
    ['eventLength', { eventLength: 100 }, ['{', 'x'.repeat(100)]],
    ['argumentLength', { argumentLength: 5 }, [toolCall({ index: 0, json: '{"a":1}' })]],
    ['toolCalls', { toolCalls: 1 }, [toolCall({ id: 'a' }), toolCall({ id: 'b' })]],
    ['depth', { depth: 2 }, [toolCall({ json: '{"a":[' }), toolCall({ json: '[1]]}' })]],
  ])('X6: an answer over %s is given up, its body left', async (cap, caps, pieces) => {
    const onCancel = jest.fn<() => void>();
    const body = bodyOf([...pieces, ': more\n\n', finishEvent], onCancel);
    const error = await errorOf(exchangeWith(() => Promise.resolve(new Response(body)), { caps }));
    expect(error).toMatchObject({ code: 'tooLarge', retryable: false });
    expect(error.message).toContain(`caps.${cap}`);
    await settle();
    expect(onCancel).toHaveBeenCalledTimes(1);
  });

  it.each([
    ['line', 'data: '],
    ['run of lines', 'data: x\n'],
    ['whole answer', '{"a":"'],
  ])('X6: keeps no more than the cap of an endless %s', async (_, begun) => {
    let pulled = 0;
    const pieces = (function* () {
      for (yield begun; pulled < 10_000; pulled += 1) {
        yield begun.endsWith('\n') ? begun.repeat(20) : 'x'.repeat(100);
      }
    })();
    const { code } = await errorOf(exchangeWith(respond(pieces), { caps: { eventLength: 1_000 } }));
    expect(code).toBe('tooLarge');
    expect(pulled).toBeLessThan(40);
  });

  it('X6: reads no more of an error than its cap', async () => {
    let pulled = 0;
    const pieces = (function* () {
      for (; pulled < 10_000; pulled += 1) yield 'x'.repeat(1_000);
    })();
    const send = respond(pieces, { status: 500 });
    expect(await errorOf(exchangeWith(send, { caps: { errorBytes: 5_000 } }))).toMatchObject({
      code: 'server',
    });
    expect(pulled).toBeLessThan(10);
  });
});

describe('exchange$ and secrets', () => {
  const secret = 'sk-very/secret+key=';
  const base64 = Buffer.from(`user:${secret}`).toString('base64');
  const forms = [secret, encodeURIComponent(secret), base64];

  const everything = (value: unknown): string =>
    value instanceof Error
      ? `${value.name} ${value.message} ${value.stack} ${JSON.stringify(value)} ${everything(value.cause)}`
      : String(value);

  it.each(forms)('X10: takes %s out of answers', async (form) => {
    const send = respond([textEvent(`Your key is ${form}.`) + finishEvent]);
    expect(await chunksOf(exchangeWith(send, { secrets: [secret] }))).toMatchObject([
      { text: expect.stringContaining('[redacted]') },
      finish,
    ]);
  });

  it.each(['ollama', 'choices', 'text'])('leaves an answer whole whose key is %s', async (key) => {
    const said = 'Run `ollama pull`: the choices are text.';
    const send = respond([textEvent(said) + finishEvent]);
    expect(await chunksOf(exchangeWith(send, { secrets: [key] }))).toEqual([
      { type: 'text', text: said },
      finish,
    ]);
  });

  it('X10: finds a secret that is escaped, in answers and in a cut error', async () => {
    const escaped = secret.replaceAll('/', '\\/');
    const said = textEvent(secret).replaceAll('/', '\\/') + finishEvent;
    const chunks = await chunksOf(exchangeWith(respond([said]), { secrets: [secret] }));
    expect(chunks[0]).toMatchObject({ text: '[redacted]' });
    const message = `{"error":{"message":"${'x '.repeat(245)}${escaped}"}}`;
    for (const send of [
      respond([message], { status: 400 }),
      respond([`data: ${message}\n\n`]),
      respond([message]),
      respond([`event: error\ndata: ${message}\n\n`]),
    ]) {
      const error = await errorOf(exchangeWith(send, { secrets: [secret] }));
      expect(error.message).not.toContain(secret.slice(0, 7));
    }
  });

  it('X10: takes a secret that may be words out of an error before that is cut', async () => {
    const fault = event({ error: { message: `${'x '.repeat(246)}change,able` } });
    const error = await errorOf(exchangeWith(respond([fault]), { secrets: ['change,able'] }));
    expect(error.message).not.toContain('change');
  });

  it('X5: passes over an event that has only a detail, or an error that says nothing', async () => {
    const odd = event({ type: 'unheard', detail: 'half' }) + event({ type: 'unheard', error: {} });
    expect(await chunksOf(exchangeWith(respond([odd + finishEvent])))).toEqual([finish]);
  });

  it.each(forms)(
    'X10: takes %s out of errors, their causes, partial texts and ids',
    async (form) => {
      const sources = [
        respond([event({ error: { message: `no ${form}`, type: form, code: form } })]),
        respond([`data: ${form}\n\n`]),
        respond([`{"error":{"message":"${form}"}}`], {
          status: 401,
          headers: { 'x-request-id': form },
        }),
        respond([`${'x'.repeat(490)}${form}`], { status: 500 }),
        respond([`data: ${'x'.repeat(190)}${form}\n\n`]),
        () => Promise.reject(new TypeError(form, { cause: new Error(form) })),
        () =>
          Promise.reject(
            Object.assign(new Error(`${'x'.repeat(490)}${form}`), {
              status: 400,
              error: { message: `${'x'.repeat(490)}${form}`, type: form },
              headers: new Headers({ authorization: form }),
            }),
          ),
        () =>
          Promise.reject(
            new MillraceError('auth', form, { cause: form, partial: form, userMessage: form }),
          ),
      ];
      for (const send of sources) {
        const shown = everything(await errorOf(exchangeWith(send, { secrets: [secret] })));
        expect(shown).not.toContain(form.slice(0, 9));
      }
    },
  );
});
