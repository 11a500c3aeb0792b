import type { ServerResponse } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import {
  EMPTY,
  filter,
  finalize,
  firstValueFrom,
  interval,
  NEVER,
  of,
  ReplaySubject,
  take,
  throwError,
  toArray,
} from 'rxjs';
import { mcp, type McpOptions } from './index.js';
import { ran } from './servers.test-support.js';
import { answer, at, type Message, send, stream, web } from './web.test-support.js';

const form = (requestedSchema: unknown, message = 'Your name?') => ({
  method: 'elicitation/create',
  params: { message, requestedSchema },
});
const sampling = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 9 } };
const listing = { method: 'roots/list' };
const object = { type: 'object', properties: {} };

interface Asked {
  readonly answers: readonly Message[];
  readonly warnings: readonly string[];
}

/** What a server gets for questions that it asks, as JSON, during a tool call. */
const asked = async (
  questions: readonly string[],
  options: Partial<McpOptions>,
): Promise<Asked> => {
  const answers$ = new ReplaySubject<Message>(100);
  const warnings: string[] = [];
  const url = await web({
    'tools/call': (message, _request, response: ServerResponse) => {
      const write = stream(response);
      questions.forEach((question, index) =>
        response.write(`data: ${question.replace('{', `{"jsonrpc":"2.0","id":"q${index}",`)}\n\n`),
      );
      answers$.pipe(take(questions.length), toArray()).subscribe(() => {
        write({ id: message['id'], result: { content: [] } });
        response.end();
      });
    },
    undefined: (message, _request, response) => {
      send(response, 202);
      answers$.next(message);
    },
  });
  const onWarning = (warning: string) => void warnings.push(warning);
  await ran([mcp(at(url, {}, { onWarning, ...options }))], [['web_use']]);
  answers$.complete();
  return { answers: await firstValueFrom(answers$.pipe(toArray())), warnings };
};

const secret = 'connect ECONNREFUSED postgres://app:s3cret@10.0.0.5/db';
const failing = () => throwError(() => new Error(secret));
const throwing = () => {
  throw new Error(secret);
};

describe('T20: a question of a server', () => {
  it.each<[what: string, question: object, options: Partial<McpOptions>]>([
    ['a form, with an error', form(object), { onElicit: failing }],
    ['a form, with an exception', form(object), { onElicit: throwing }],
    [
      'a form, with a rejection',
      form(object),
      { onElicit: () => Promise.reject(new Error(secret)) },
    ],
    ['a model request, with an error', sampling, { onSample: failing }],
    ['a model request, with an exception', sampling, { onSample: throwing }],
  ])('X10: does not learn why the program failed: %s', async (_what, question, options) => {
    const { answers, warnings } = await asked([JSON.stringify(question)], options);
    expect(JSON.stringify(answers)).not.toMatch(/s3cret|ECONNREFUSED/);
    expect(answers).toMatchObject([{ error: { message: 'The client could not answer.' } }]);
    expect(warnings).toEqual([expect.stringContaining("'web' was not answered")]);
    expect(warnings[0]).toContain('s3cret');
  });

  it.each<[what: string, question: object, options: Partial<McpOptions>, expected: object]>([
    ['a form', form(object), { onElicit: () => EMPTY }, { result: { action: 'cancel' } }],
    ['a model request', sampling, { onSample: () => EMPTY }, { error: {} }],
    ['its roots', listing, { roots: EMPTY }, { error: {} }],
  ])('is answered if the program has none: %s', async (_what, question, options, expected) => {
    expect((await asked([JSON.stringify(question)], options)).answers).toMatchObject([expected]);
  });

  it.each(['{}', '[]', 'null', '{"roots":7}', '{"__proto__":{"polluted":"yes"}}'])(
    'for its roots with the parameters %s is answered, or refused',
    async (params) => {
      const { answers } = await asked([`{"method":"roots/list","params":${params}}`], {
        roots: [{ uri: 'file:///work', name: 'Work' }],
      });
      expect(answers).toHaveLength(1);
      expect(JSON.stringify(answers)).toMatch(/file:\/\/\/work|error/);
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    },
  );

  it('X6: is refused while too many others are open', async () => {
    let calls = 0;
    const { answers } = await asked(Array<string>(24).fill(JSON.stringify(sampling)), {
      onSample: () => {
        calls += 1;
        return NEVER;
      },
      timeouts: { connectMs: 5_000, toolMs: 1_000 },
    });
    expect(calls).toBe(16);
    expect(answers.map((it) => JSON.stringify(it))).toEqual(
      Array<unknown>(8).fill(expect.stringContaining('too many questions')),
    );
  });

  const hostile = '{"type":"object","properties":{"polluted":{"type":"string","default":"yes"}}}';
  it.each([
    `{"type":"object","properties":{},"anyOf":[{"type":"object","properties":{"__proto__":${hostile}}}]}`,
    `{"type":"object","properties":{},"oneOf":[{"type":"object","properties":{"__proto__":${hostile}}}]}`,
    `{"type":"object","properties":{"__proto__":{"type":"string","default":"x","anyOf":[${hostile}]}}}`,
    '{"type":"object","properties":{"__proto__":{"type":"string","default":"yes"}}}',
    `{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"type":"object","properties":{"constructor":{"type":"object","properties":{"prototype":${hostile}}}}}]}`,
  ])('X15: cannot pollute prototypes by its schema: %s', async (schema) => {
    const { answers } = await asked(
      [`{"method":"elicitation/create","params":{"message":"","requestedSchema":${schema}}}`],
      {
        onElicit: () => of({ action: 'accept', content: {} }),
      },
    );
    expect(answers).toHaveLength(1);
    expect(Object.keys(Object.prototype)).toEqual([]);
    for (const it of [{}, [], () => undefined]) expect(it).not.toHaveProperty('polluted');
  });

  it('is shown without control characters, and its defaults are filled in', async () => {
    const properties = {
      name: { type: 'string', title: 'Na\u001b[2Kme', description: 'Yo\u202eurs' },
      mood: { type: 'string', default: 'calm' },
      age: { type: 'integer', default: 7 },
      is: { type: 'boolean', default: false },
    };
    const seen: unknown[] = [];
    const { answers } = await asked(
      [JSON.stringify(form({ type: 'object', properties }, 'Who\u001b[2K?'))],
      {
        onElicit: (request) => {
          seen.push(request.message, request.requestedSchema.properties['name']);
          return of({ action: 'accept', content: { name: 'Ada', mood: 'glad' } });
        },
      },
    );
    expect(seen).toMatchObject(['Who[2K?', { title: 'Na[2Kme', description: 'Yours' }]);
    expect(answers).toMatchObject([
      { result: { action: 'accept', content: { name: 'Ada', mood: 'glad', age: 7, is: false } } },
    ]);
  });

  it.each([
    ['https://bank.example/login', 'https://bank.example/login'],
    ['HTTP://BANK.example:80/a b', 'http://bank.example/a%20b'],
    ['https://bank.example@evil.example/', undefined],
    ['https://bank.example:443@evil.example/', undefined],
    ['https://:word@evil.example/', undefined],
    ['https://@evil.example/', 'https://evil.example/'],
    ['javascript:alert(1)', undefined],
    ['data:text/html,a', undefined],
    ['file:///etc/passwd', undefined],
    ['', undefined],
  ])('for the page %s shows %s', async (address, expected) => {
    const pages: string[] = [];
    const params = { mode: 'url', message: 'Log in.', url: address, elicitationId: 'e' };
    const { answers } = await asked([JSON.stringify({ method: 'elicitation/create', params })], {
      onElicitUrl: ({ url }) => {
        pages.push(url);
        return of(true);
      },
    });
    expect(pages).toEqual(expected === undefined ? [] : [expected]);
    expect(answers).toMatchObject([
      expected === undefined ? { error: {} } : { result: { action: 'accept' } },
    ]);
  });

  it('that is declined gets no defaults', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string', default: 'x' } } };
    const { answers } = await asked([JSON.stringify(form(schema))], {
      onElicit: () => of({ action: 'decline' }),
    });
    expect(answers).toMatchObject([{ result: { action: 'decline' } }]);
    expect(JSON.stringify(answers)).not.toContain('"x"');
  });
});

it('T20: a decider that fails costs its tool only', async () => {
  let lists = 0;
  const url = await web({
    initialize: (message, _request, response) =>
      answer(response, message, {
        protocolVersion: '2025-06-18',
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: 'web', version: '1' },
      }),
    'tools/list': (message, _request, response) => {
      lists += 1;
      const tools = ['use', 'prey'].map((name) => ({
        name,
        description: name === 'prey' ? `Is version ${lists}.` : 'Is use.',
        inputSchema: { type: 'object' },
      }));
      answer(response, message, { tools });
    },
    'tools/call': (message, _request, response) => {
      const write = stream(response);
      write({ method: 'notifications/tools/list_changed' });
      write({ id: message['id'], result: { content: [{ type: 'text', text: 'ran' }] } });
      response.end();
    },
  });
  const servers = mcp(at(url, {}, { onChanged: failing }));
  const states: unknown[] = [];
  const held = servers.servers$.subscribe(([server]) => states.push(server?.status));
  const { tools, results, warnings } = await ran([servers], [['web_use']], [['web_use']]);
  held.unsubscribe();
  expect(results['web_use']).toBe('ran');
  expect(tools.map((names) => names.length)).toEqual([2, 1, 1]);
  expect(warnings.join('\n')).toContain("'onChanged' failed for 'prey'");
  expect(states).not.toContain('failed');
});

describe('X45: a question needs an open request', () => {
  const page = {
    method: 'elicitation/create',
    params: { mode: 'url', message: 'Log in.', url: 'https://bank.example/', elicitationId: 'e' },
  };
  /** The three callbacks of a program, which count their calls and never answer. */
  const callbacks = () => {
    const seen = { asked: 0, left: 0, aborted: 0 };
    const ask = (_request: unknown, signal: AbortSignal) => {
      seen.asked += 1;
      signal.addEventListener('abort', () => (seen.aborted += 1));
      return NEVER.pipe(finalize(() => (seen.left += 1)));
    };
    return { seen, options: { onElicit: ask, onElicitUrl: ask, onSample: ask } };
  };
  const refusal = { error: { code: -32_602, message: expect.stringContaining('open') } };

  const questions: readonly (readonly [string, object])[] = [
    ['a form', form(object)],
    ['a page', page],
    ['a model request', sampling],
  ];

  it.each(questions)('%s is refused when the last request has ended', async (_what, question) => {
    const answers$ = new ReplaySubject<Message>(1);
    let write = (_message: object): void => undefined;
    const url = await web({
      GET: (_message, _request, response) => (write = stream(response)),
      undefined: (message, _request, response) => {
        send(response, 202);
        answers$.next(message);
      },
    });
    const { seen, options } = callbacks();
    const servers = mcp(at(url, {}, options));
    const held = servers.servers$.subscribe();
    await ran([servers], [['web_use']]);
    write({ id: 'q', ...question });
    expect(await firstValueFrom(answers$)).toMatchObject({ id: 'q', ...refusal });
    held.unsubscribe();
    expect(seen).toEqual({ asked: 0, left: 0, aborted: 0 });
  });

  it.each(questions)(
    '%s ends with the request whose stream brought it, and none is asked in that stream later',
    async (_what, question) => {
      const answers$ = new ReplaySubject<Message>(2);
      const open$ = new ReplaySubject<readonly [id: unknown, write: (message: object) => void]>(2);
      const url = await web({
        'tools/call': (message, _request, response: ServerResponse) =>
          open$.next([message['id'], stream(response)]),
        undefined: (message, _request, response) => {
          send(response, 202);
          answers$.next(message);
        },
      });
      const { seen, options } = callbacks();
      const servers = mcp(at(url, {}, options));
      const call = () =>
        createAgent({
          model: scriptedModel([toolCall('web_use')], [text('Done.')]),
          use: [servers],
        }).call$('?');
      const first = call().subscribe();
      const [, writeFirst] = await firstValueFrom(open$);
      const second = firstValueFrom(call());
      const [, [id, writeSecond] = []] = await firstValueFrom(open$.pipe(take(2), toArray()));
      writeFirst({ id: 'q', ...question });
      await firstValueFrom(interval(5).pipe(filter(() => seen.asked > 0)));
      first.unsubscribe();
      expect(await firstValueFrom(answers$)).toMatchObject({ id: 'q', ...refusal });
      writeFirst({ id: 'late', ...question });
      const [, late] = await firstValueFrom(answers$.pipe(take(2), toArray()));
      expect(late).toMatchObject({ id: 'late', ...refusal });
      writeSecond?.({ id, result: { content: [] } });
      expect((await second).text).toBe('Done.');
      expect(seen).toEqual({ asked: 1, left: 1, aborted: 1 });
    },
  );
});
