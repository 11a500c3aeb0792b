import { afterEach, describe, expect, it } from '@jest/globals';
import { type MillraceError, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import type { Client } from '@modelcontextprotocol/client';
import {
  BehaviorSubject,
  concatMap,
  EMPTY,
  firstValueFrom,
  forkJoin,
  map,
  NEVER,
  of,
  ReplaySubject,
  Subject,
  throwError,
} from 'rxjs';
import { clientOf, closeAll, connected, textIn, type Way, ways } from './clients.test-support.js';
import {
  type McpPrompt,
  type McpResource,
  type McpResourceTemplate,
  mcpClient,
  mcpHandler,
  serveMcp,
} from './index.js';

afterEach(closeAll);

const note: McpResource = {
  uri: 'notes:///one',
  name: 'one',
  description: 'A note.',
  mimeType: 'text/plain',
  read: () => 'The first note.',
};

const files: McpResourceTemplate = {
  uriTemplate: 'file:///logs/{name}',
  name: 'logs',
  complete: { name: ['monday', 'Tuesday', 'march'] },
  read: ({ variables: { name = '' } }) => `Log of ${name}.`,
};

const greet: McpPrompt = {
  name: 'greet',
  description: 'Greets.',
  arguments: [
    {
      name: 'who',
      required: true,
      complete: (value, { arguments: { city = '' } }) => [`${value}nn of ${city}`],
    },
    { name: 'city' },
  ],
  get: ({ who = '', city = 'nowhere' }) => [
    `Greet ${who} of ${city}.`,
    { role: 'assistant', content: 'Hello.' },
  ],
};

const rejection = async (promise: Promise<unknown>) =>
  promise.then(
    (value) => value,
    (error: unknown) => error,
  );

describe.each(ways)('T24: over %s', (way) => {
  it('lists and reads resources: text, bytes, parts, and those of templates', async () => {
    const bytes: McpResource = { uri: 'b:///', name: 'b', read: () => of(Uint8Array.of(1, 2)) };
    const parts: McpResource = {
      uri: 'p:///',
      name: 'p',
      mimeType: 'text/html',
      read: async () => Promise.resolve([{ content: 'a' }, { uri: 'p:///2', content: 'b' }]),
    };
    const { client } = await connected(way, [], { resources: [note, bytes, parts, files] });
    const { resources } = await client.listResources();
    expect(resources.map(({ uri }) => uri)).toEqual(['notes:///one', 'b:///', 'p:///']);
    expect(resources[0]).toMatchObject({
      name: 'one',
      description: 'A note.',
      mimeType: 'text/plain',
    });
    expect((await client.listResourceTemplates()).resourceTemplates).toMatchObject([
      { uriTemplate: 'file:///logs/{name}', name: 'logs' },
    ]);
    const read = async (uri: string) => (await client.readResource({ uri })).contents;
    expect(await read(note.uri)).toEqual([
      { uri: note.uri, mimeType: 'text/plain', text: 'The first note.' },
    ]);
    expect(await read('b:///')).toEqual([{ uri: 'b:///', blob: 'AQI=' }]);
    expect(await read('p:///')).toEqual([
      { uri: 'p:///', mimeType: 'text/html', text: 'a' },
      { uri: 'p:///2', mimeType: 'text/html', text: 'b' },
    ]);
    expect(await read('file:///logs/a%20b')).toMatchObject([{ text: 'Log of a b.' }]);
  });

  it.each([
    'notes:///none',
    'file:///logs/..%2f..%2fetc',
    'file:///logs/..',
    'file:///logs/%2e%2E',
    'file:///logs/a%2Fb',
    'file:///logs/a%5c..%5cb',
    'file:///logs/a%00',
    'file:///logs/%ff',
    'file:///logs/a/b',
    'file:///logs/',
    `file:///logs/${'x'.repeat(2_000)}`,
    'constructor',
  ])('does not find %.40s, and reads nothing', async (uri) => {
    const seen: string[] = [];
    const spied: McpResourceTemplate = {
      ...files,
      read: (it) => {
        seen.push(it.uri);
        return '';
      },
    };
    const { client } = await connected(way, [], { resources: [note, spied] });
    expect(await rejection(client.readResource({ uri }))).toMatchObject({
      code: expect.any(Number),
    });
    expect(seen).toEqual([]);
  });

  it('lists and gets prompts with their arguments', async () => {
    const { client } = await connected(way, [], { prompts: [greet] });
    expect((await client.listPrompts()).prompts).toMatchObject([
      { name: 'greet', arguments: [{ name: 'who', required: true }, { name: 'city' }] },
    ]);
    const { messages } = await client.getPrompt({
      name: 'greet',
      arguments: { who: 'Ann', other: 'x' },
    });
    expect(messages).toEqual([
      { role: 'user', content: { type: 'text', text: 'Greet Ann of nowhere.' } },
      { role: 'assistant', content: { type: 'text', text: 'Hello.' } },
    ]);
    await expect(client.getPrompt({ name: 'greet' })).rejects.toThrow(/needs the argument 'who'/);
    await expect(client.getPrompt({ name: 'toString' })).rejects.toThrow(/no prompt 'toString'/);
  });

  it('completes the arguments of prompts and templates', async () => {
    const many: McpPrompt = {
      name: 'many',
      arguments: [
        { name: 'a', complete: () => Array.from({ length: 250 }, (_, at) => `v${at}`) },
        { name: 'b', complete: () => ['x'.repeat(1_001), 'fits'] },
        { name: 'c' },
      ],
      get: () => '',
    };
    const { client } = await connected(way, [], { prompts: [greet, many], resources: [files] });
    const complete = async (ref: object, name: string, value: string, args?: object) => {
      const context = args === undefined ? {} : { context: { arguments: { ...args } } };
      const params = { ref, argument: { name, value }, ...context };
      return (await client.complete(params as Parameters<Client['complete']>[0])).completion;
    };
    const ofPrompt = (name: string) => ({ type: 'ref/prompt', name });
    expect(await complete(ofPrompt('greet'), 'who', 'A', { city: 'Rome' })).toMatchObject({
      values: ['Ann of Rome'],
    });
    const template = { type: 'ref/resource', uri: files.uriTemplate };
    expect(await complete(template, 'name', 'M')).toMatchObject({ values: ['monday', 'march'] });
    expect(await complete(template, 'constructor', '')).toMatchObject({ values: [] });
    const cut = await complete(ofPrompt('many'), 'a', '');
    expect(cut).toMatchObject({ total: 250, hasMore: true });
    expect(cut.values).toHaveLength(100);
    expect((await complete(ofPrompt('many'), 'b', '')).values).toEqual(['fits']);
    expect((await complete(ofPrompt('many'), 'c', '')).values).toEqual([]);
    await expect(complete(ofPrompt('none'), 'a', '')).rejects.toThrow(/no prompt 'none'/);
  });

  it('announces changed lists', async () => {
    const resources$ = new BehaviorSubject<readonly McpResource[]>([note]);
    const prompts$ = new BehaviorSubject<readonly McpPrompt[]>([greet]);
    const changed$ = new ReplaySubject<string>(9);
    const { client } = await connected(way, [], {
      resources: resources$,
      prompts: prompts$,
      client: {
        listChanged: {
          resources: {
            debounceMs: 0,
            onChanged: (_error, all) => changed$.next((all ?? []).map(({ name }) => name).join()),
          },
          prompts: {
            debounceMs: 0,
            onChanged: (_error, all) => changed$.next((all ?? []).map(({ name }) => name).join()),
          },
        },
      },
    });
    await client.listResources();
    const first = firstValueFrom(changed$);
    resources$.next([note, { ...note, uri: 'notes:///two', name: 'two' }]);
    expect(await first).toBe('one,two');
    const second = new Promise((resolve) => {
      changed$.subscribe((names) => names === 'greet,bye' && resolve(names));
    });
    prompts$.next([greet, { ...greet, name: 'bye' }]);
    await second;
  });

  it('hides errors of the application, and reports them', async () => {
    const errors: string[] = [];
    const secret = () => throwError(() => new Error('postgres://me:secret@db'));
    const broken: McpResource = { ...note, read: secret };
    const { client } = await connected(way, [], {
      resources: [broken, { ...note, uri: 'e:///', read: () => EMPTY }],
      prompts: [{ name: 'p', arguments: [{ name: 'a', complete: secret }], get: secret }],
      onError: ({ message }) => void errors.push(message),
    });
    const ref = { type: 'ref/prompt', name: 'p' } as const;
    for (const failed of [
      () => client.readResource({ uri: note.uri }),
      () => client.readResource({ uri: 'e:///' }),
      () => client.getPrompt({ name: 'p' }),
      () => client.complete({ ref, argument: { name: 'a', value: '' } }),
    ]) {
      const error = await rejection(failed());
      expect(error).toMatchObject({ code: -32603 });
      expect(String(error)).not.toContain('secret');
    }
    expect(errors.filter((it) => it.includes('secret'))).toHaveLength(3);
    expect(errors.join()).toContain("'e:///': 'read' must return or emit");
  });

  it('refuses a resource that is too large, and a cursor that is not one of the list', async () => {
    const big: McpResource = { ...note, read: () => 'x'.repeat(101) };
    const { client } = await connected(way, [], { resources: [big], limits: { result: 100 } });
    await expect(client.readResource({ uri: big.uri })).rejects.toThrow(
      /larger than 100 characters/,
    );
    for (const cursor of ['1', '-1', '1000', 'x', '1e3', '0']) {
      const request = { method: 'resources/list' as const, params: { cursor } };
      expect(await rejection(client.request(request))).toMatchObject({ code: -32602 });
    }
  });

  it('pages long lists', async () => {
    const resources = Array.from({ length: 2_500 }, (_, at) => ({ ...note, uri: `n:///${at}` }));
    const { client } = await connected(way, [], { resources });
    const sizes: number[] = [];
    let cursor: string | undefined;
    do {
      const params = cursor === undefined ? {} : { cursor };
      const page = await client.request({ method: 'resources/list', params });
      sizes.push(page.resources.length);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(sizes).toEqual([1_000, 1_000, 500]);
    const between = { method: 'resources/list' as const, params: { cursor: '1001' } };
    expect(await rejection(client.request(between))).toMatchObject({ code: -32602 });
  });

  it('ends a read that takes too long, and unsubscribes from one that is cancelled', async () => {
    const started$ = new Subject<AbortSignal>();
    const slow: McpResource = {
      ...note,
      read: ({ signal }) => {
        started$.next(signal);
        return NEVER;
      },
    };
    const { client } = await connected(way, [], { resources: [slow], timeouts: { toolMs: 300 } });
    const signals: AbortSignal[] = [];
    started$.subscribe((signal) => signals.push(signal));
    const abort = new AbortController();
    started$.pipe().subscribe(() => abort.abort());
    await rejection(client.readResource({ uri: note.uri }, { signal: abort.signal }));
    expect(await rejection(client.readResource({ uri: note.uri }))).toMatchObject({ code: -32603 });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });

  it('asks the client for its user, model and roots from a tool, concurrently and one after another', async () => {
    const asked: string[] = [];
    const { client } = await connected(way, [questions], {
      client: { capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} } },
      prepare: (it) => answering(it, asked),
    });
    const result = await client.callTool({ name: 'questions' });
    expect(textIn(result)).toBe('Ann likes red. Hello! file:///work accept');
    expect(asked).toEqual(['name', 'sample', 'roots', 'colour', 'https://example.com/pay']);
  });
});

const name = jsonSchema({
  type: 'object',
  properties: { value: { type: 'string', maxLength: 10 } },
  required: ['value'],
});

const questions = tool({
  name: 'questions',
  description: 'Asks everything.',
  run: (_input, context) => {
    const client = mcpClient(context);
    return forkJoin([
      client.elicit$({ message: 'name', schema: name }),
      client.sample$({ messages: 'Greet.', maxTokens: 9 }),
      client.roots$,
    ]).pipe(
      concatMap(([who, { text }, [root]]) =>
        client
          .elicit$({ message: 'colour', schema: name })
          .pipe(
            concatMap((colour) =>
              client
                .elicitUrl$({ message: 'Pay', url: 'https://example.com/pay' })
                .pipe(
                  map((action) =>
                    who.action === 'accept' && colour.action === 'accept'
                      ? `${who.content.value} likes ${colour.content.value}. ${text} ${root?.uri} ${action}`
                      : 'declined',
                  ),
                ),
            ),
          ),
      ),
    );
  },
});

const answering = (client: Client, asked: string[]): void => {
  client.setRequestHandler('elicitation/create', ({ params }) => {
    asked.push('url' in params ? String(params.url) : params.message);
    return 'url' in params
      ? { action: 'accept' }
      : { action: 'accept', content: { value: params.message === 'name' ? 'Ann' : 'red' } };
  });
  client.setRequestHandler('sampling/createMessage', () => {
    asked.push('sample');
    return { role: 'assistant', model: 'm', content: { type: 'text', text: 'Hello!' } };
  });
  client.setRequestHandler('roots/list', () => {
    asked.push('roots');
    return { roots: [{ uri: 'file:///work' }] };
  });
};

describe.each<Way>(['stdio 2025', 'http 2025'])('T24: sessions over %s', (way) => {
  it('notifies subscribers of resources, and only of those', async () => {
    const resourceUpdates$ = new Subject<string>();
    const updated: string[] = [];
    const update$ = new Subject<void>();
    const two = { ...note, uri: 'notes:///two' };
    const { client } = await connected(way, [], {
      resources: [note, two, files],
      resourceUpdates$,
      limits: { subscriptions: 2 },
      prepare: (it) =>
        it.setNotificationHandler('notifications/resources/updated', ({ params }) => {
          updated.push(params.uri);
          update$.next();
        }),
    });
    await expect(client.subscribeResource({ uri: 'notes:///none' })).rejects.toThrow();
    await client.subscribeResource({ uri: note.uri });
    await client.subscribeResource({ uri: note.uri });
    await client.subscribeResource({ uri: 'file:///logs/a' });
    await expect(client.subscribeResource({ uri: two.uri })).rejects.toThrow(/2 subscriptions/);
    const once = async (uri: string) => {
      const next = firstValueFrom(update$);
      resourceUpdates$.next(two.uri);
      resourceUpdates$.next(uri);
      await next;
    };
    await once(note.uri);
    await client.unsubscribeResource({ uri: note.uri });
    resourceUpdates$.next(note.uri);
    await once('file:///logs/a');
    expect(updated).toEqual([note.uri, 'file:///logs/a']);
  });

  it('sends the log messages that the client wants, up to a limit', async () => {
    const seen: unknown[] = [];
    const logs = tool({
      name: 'logs',
      description: 'Logs.',
      run: (_input, context) => {
        const { log } = mcpClient(context);
        log('debug', 'hidden');
        log('warning', { a: 1 }, 'db');
        log('error', 1n);
        log('error', 'x'.repeat(20_000));
        log('error', 'dropped');
        return 'Done.';
      },
    });
    const { client } = await connected(way, [logs], {
      limits: { logs: 4 },
      prepare: (it) =>
        it.setNotificationHandler('notifications/message', ({ params }) => {
          seen.push(params);
        }),
    });
    await client.setLoggingLevel('info');
    expect(await rejection(client.setLoggingLevel('garbage' as 'info'))).toMatchObject({});
    await client.callTool({ name: 'logs' });
    expect(seen).toMatchObject([
      { level: 'warning', data: { a: 1 }, logger: 'db' },
      { level: 'error', data: '[not JSON]' },
      { level: 'error', data: expect.stringMatching(/^x{10000}…$/) },
    ]);
  });
});

describe('T24: answers of clients', () => {
  const ask = tool({
    name: 'ask',
    description: 'Asks.',
    run: (_input, context) =>
      mcpClient(context)
        .elicit$({ message: 'name', schema: name })
        .pipe(map((answer) => (answer.action === 'accept' ? answer.content.value : answer.action))),
  });

  it.each([{ value: 3 }, {}, { value: 'longer than ten' }, undefined])(
    'are refused if they do not match the form: %j',
    async (content) => {
      const errors: MillraceError[] = [];
      const { client } = await connected('stdio 2025', [ask], {
        client: { capabilities: { elicitation: { form: {} } } },
        onError: (error) => void errors.push(error),
        prepare: (it) =>
          it.setRequestHandler('elicitation/create', () =>
            content === undefined
              ? { action: 'accept' }
              : { action: 'accept', content: content as Record<string, string> },
          ),
      });
      const result = await client.callTool({ name: 'ask' });
      expect(result.isError).toBe(true);
      expect(textIn(result)).toBe('The answer of the client has the wrong shape.');
      expect(errors[0]?.code).toBe('invalidResponse');
    },
  );

  it('of 2026 are asked for again if they do not match, and refused if their state was changed', async () => {
    const { fetch, close } = mcpHandler([ask]);
    const call = async (params: object) => {
      const _meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 't', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
      };
      const body = {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'ask', arguments: {}, _meta, ...params },
      };
      const response = await fetch(
        new Request('http://localhost/mcp', {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            'mcp-protocol-version': '2026-07-28',
            'mcp-method': 'tools/call',
            'mcp-name': 'ask',
          },
          body: JSON.stringify(body),
        }),
      );
      return (await response.json()) as Record<string, Record<string, unknown>>;
    };
    const first = (await call({}))['result'] ?? {};
    expect(first['resultType']).toBe('input_required');
    const [id = ''] = Object.keys(first['inputRequests'] ?? {});
    const { requestState } = first;
    for (const response of [{ action: 'accept' }, { action: 'no' }, { value: 'Ann' }, 'x', null]) {
      const { result, error } = await call({ inputResponses: { [id]: response }, requestState });
      expect(error ?? result).toEqual(
        error ?? expect.objectContaining({ resultType: 'input_required' }),
      );
    }
    const right = { inputResponses: { [id]: { action: 'accept', content: { value: 'Ann' } } } };
    expect(textIn((await call({ ...right, requestState }))['result'] ?? {})).toBe('Ann');
    const changed = `${String(requestState).slice(0, -4)}AAAA`;
    expect((await call({ ...right, requestState: changed }))['error']).toMatchObject({
      code: -32602,
    });
    close();
  });

  it('of 2026 count for the same call of the same user only', async () => {
    const twice = tool({
      name: 'twice',
      description: 'Asks twice.',
      input: jsonSchema({ type: 'object', properties: { to: { type: 'string' } } }),
      run: ({ to = '' }, context) => {
        const { elicit$ } = mcpClient(context);
        return elicit$({ id: 'first', message: 'pay?', schema: name }).pipe(
          concatMap(() => elicit$({ id: 'second', message: 'sure?', schema: name })),
          map(() => `Paid ${to}.`),
        );
      },
    });
    const { fetch, close } = mcpHandler([twice], {
      authorize: (token) => token !== undefined && { user: token },
    });
    const call = async (user: string, to: string, params: object) => {
      const _meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 't', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
      };
      const response = await fetch(
        new Request('http://localhost/mcp', {
          method: 'POST',
          headers: {
            authorization: `Bearer ${user}`,
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            'mcp-protocol-version': '2026-07-28',
            'mcp-method': 'tools/call',
            'mcp-name': 'twice',
          },
          body: JSON.stringify({
            jsonrpc: '2.0',
            id: 1,
            method: 'tools/call',
            params: { name: 'twice', arguments: { to }, _meta, ...params },
          }),
        }),
      );
      return (await response.json()) as Record<string, Record<string, unknown>>;
    };
    const yes = { action: 'accept', content: { value: 'yes' } };
    const { result = {} } = await call('ann', 'Eve', { inputResponses: { first: yes } });
    expect(Object.keys(result['inputRequests'] ?? {})).toEqual(['second']);
    const last = { inputResponses: { second: yes }, requestState: result['requestState'] };
    const elsewhere = await call('ann', 'Mallory', last);
    expect(Object.keys(elsewhere['result']?.['inputRequests'] ?? {})).toEqual(['first']);
    expect((await call('bob', 'Eve', last))['error']).toMatchObject({ code: -32602 });
    expect(textIn((await call('ann', 'Eve', last))['result'] ?? {})).toBe('Paid Eve.');
    close();
  });

  it('are not waited for when the client leaves', async () => {
    const { client } = await connected('stdio 2025', [ask], {
      client: { capabilities: { elicitation: { form: {} } } },
      prepare: (it) =>
        it.setRequestHandler('elicitation/create', () => {
          void it.close();
          return new Promise(() => undefined);
        }),
    });
    expect(await rejection(client.callTool({ name: 'ask' }))).toBeInstanceOf(Error);
  });
});

describe('T24: options', () => {
  it.each<[what: string, options: object, message: RegExp]>([
    [
      'a resource without read',
      { resources: [{ uri: 'a:///', name: 'a' }] },
      /\{ uri, name, read \}/,
    ],
    ['a URI that is none', { resources: [{ ...note, uri: 'x' }] }, /complete 'uri'/],
    ['two of a URI', { resources: [note, note] }, /Two resources have the URI/],
    [
      'a template without variables',
      { resources: [{ ...files, uriTemplate: 'a:///' }] },
      /\{name\}/,
    ],
    [
      'a slow template',
      { resources: [{ ...files, uriTemplate: 'a:///{+a}/{+b}' }] },
      /one \{\+path\}/,
    ],
    [
      'a broken template',
      { resources: [{ ...files, uriTemplate: 'a:///{x' }] },
      /not a URI template/,
    ],
    ['both', { resources: [{ ...files, uri: 'a:///' }] }, /either 'uri' or 'uriTemplate'/],
    ['a prompt without get', { prompts: [{ name: 'a' }] }, /\{ name, get \}/],
    ['two of a name', { prompts: [greet, greet] }, /Two prompts are named 'greet'/],
    ['updates of nothing', { resourceUpdates$: NEVER }, /needs 'resources'/],
    ['a short key', { stateKey: 'short' }, /at least 32 characters/],
  ])('refuse %s', (_what, options, message) => {
    expect(() => serveMcp([], { stdio: true, ...options })).toThrow(message);
  });

  it('announce no capability that is not used', async () => {
    const { client } = await connected('stdio 2025', []);
    expect(client.getServerCapabilities()).toEqual({ logging: {}, tools: { listChanged: false } });
    expect(clientOf('stdio 2025')).toBeDefined();
  });
});
