import { afterEach, describe, expect, it } from '@jest/globals';
import {
  approval,
  type Approver,
  contextKey,
  createAgent,
  type JsonSchema,
  MillraceError,
  requireApproval,
  type Tool,
  tool,
  toolOutput,
  transient,
} from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { jsonSchema } from 'millrace/schema';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { BehaviorSubject, firstValueFrom, Observable, of, Subject, throwError } from 'rxjs';
import { mcpTools } from '../index.js';
import {
  clientOf,
  closeAll,
  connected,
  overHttp,
  serving,
  textIn,
  ways,
} from './clients.test-support.js';
import { approveByClient, serveMcp, type ServeMcpOptions } from './index.js';

afterEach(closeAll);

const word = jsonSchema({
  type: 'object',
  properties: { word: { type: 'string' } },
  required: ['word'],
  additionalProperties: false,
});

const echo = tool({
  name: 'echo',
  description: 'Repeats a word.',
  input: word,
  idempotent: true,
  run: ({ word: it }) => `You said ${it}.`,
});

describe.each(ways)('T21: over %s', (way) => {
  it('lists tools with their schema and hints, and calls them', async () => {
    const { client } = await connected(way, [echo, requireApproval(echoAs('careful'), false)]);
    const { tools } = await client.listTools();
    expect(tools).toMatchObject([
      {
        name: 'echo',
        description: 'Repeats a word.',
        inputSchema: { type: 'object', required: ['word'] },
        annotations: { idempotentHint: true },
      },
      { name: 'careful', annotations: { destructiveHint: true } },
    ]);
    const result = await client.callTool({ name: 'echo', arguments: { word: 'hello' } });
    expect(result).toMatchObject({ isError: false });
    expect(textIn(result)).toBe('You said hello.');
  });

  it('gives results with a schema as structured content, which the client validates', async () => {
    const measured = { name: 'measure', description: 'Measures.', input: word } as const;
    const output = jsonSchema({
      type: 'object',
      properties: { letters: { type: 'number' } },
      required: ['letters'],
      additionalProperties: false,
    });
    const measure = tool({
      ...measured,
      output,
      run: ({ word: { length: letters } }) =>
        letters === 0 ? toolOutput({ content: 'nothing' }) : { letters, secret: 'x' },
    });
    const wrong = tool({
      ...measured,
      name: 'wrong',
      output: jsonSchema<JsonSchema>(output.jsonSchema),
      run: () => ({ letters: 'secret' }),
    });
    const { client } = await connected(way, [measure, wrong, echo], {
      limits: { result: 100 },
    });
    const { tools } = await client.listTools();
    expect(tools.map(({ name, outputSchema }) => [name, outputSchema])).toEqual([
      ['measure', output.jsonSchema],
      ['wrong', output.jsonSchema],
      ['echo', undefined],
    ]);
    const ask = (name: string, given: string) =>
      client.callTool({ name, arguments: { word: given } });
    expect(await ask('measure', 'four')).toMatchObject({
      isError: false,
      content: [{ type: 'text', text: '{"letters":4}' }],
      structuredContent: { letters: 4 },
    });
    expect(await ask('measure', '')).toMatchObject({ isError: true });
    const failed = await ask('wrong', 'four');
    expect(failed).toMatchObject({ isError: true });
    expect(textIn(failed)).toBe(
      'The result of wrong does not match its schema:\n- letters: must be number',
    );
    expect(await ask('echo', 'four')).not.toHaveProperty('structuredContent');
  });

  it('refuses wrong arguments, and unknown tools', async () => {
    const { client } = await connected(way, [echo]);
    const result = await client.callTool({ name: 'echo', arguments: { word: 3 } });
    expect(result.isError).toBe(true);
    expect(textIn(result)).toMatch(/The arguments for echo are invalid/);
    await expect(client.callTool({ name: 'none' })).rejects.toMatchObject({ code: -32602 });
  });

  it('sends progress to a client that wants it', async () => {
    const counts = tool({
      name: 'count',
      description: 'Counts.',
      run: () => of('one', { progress: 5, total: 9, message: 'five' }, { done: 7 }, 'end'),
    });
    const { client } = await connected(way, [counts]);
    const seen: unknown[] = [];
    const result = await client.callTool(
      { name: 'count' },
      { onprogress: (progress) => seen.push(progress) },
    );
    expect(textIn(result)).toBe('oneend');
    expect(seen).toMatchObject([
      { progress: 1, message: 'one' },
      { progress: 5, total: 9, message: 'five' },
      { progress: 6, message: '{"done":7}' },
      { progress: 7, message: 'end' },
    ]);
  });

  it('cancels the run when the client cancels, and when the server ends', async () => {
    const started$ = new Subject<void>();
    const cancelled$ = new Subject<boolean>();
    const waits = tool({
      name: 'wait',
      description: 'Waits.',
      timeoutMs: 2_000_000_000,
      run: (_input, { signal }) =>
        new Observable(() => {
          started$.next();
          return () => cancelled$.next(signal.aborted);
        }),
    });
    const { client, serving } = await connected(way, [waits]);
    const call = async (signal?: AbortSignal) => {
      const started = firstValueFrom(started$);
      const result = client
        .callTool({ name: 'wait' }, signal ? { signal } : {})
        .catch((error: unknown) => error);
      await started;
      return result;
    };
    const abort = new AbortController();
    const first = firstValueFrom(cancelled$);
    started$.subscribe(() => queueMicrotask(() => abort.abort()));
    expect(await call(abort.signal)).toBeInstanceOf(Error);
    await first;
    const second = firstValueFrom(cancelled$);
    const started = firstValueFrom(started$);
    client.callTool({ name: 'wait' }).catch(() => undefined);
    await started;
    serving.unsubscribe();
    await second;
  });

  it.each([
    ['accept', 'You said yes.'],
    ['decline', 'Not run: this call to ask was not approved. The user denied it.'],
    ['reject', 'Not run: this call to ask was not approved. The user denied it.'],
    ['cancel', 'Not run: this call to ask was not approved. The user did not decide.'],
  ] as const)('asks the user for approval: %s', async (action, expected) => {
    const asked: string[] = [];
    const { client } = await connected(way, [requireApproval(echoAs('ask'), approveByClient)], {
      form: (message) => {
        asked.push(message);
        return action;
      },
    });
    const result = await client.callTool({ name: 'ask', arguments: { word: 'yes' } });
    expect(textIn(result)).toBe(expected);
    expect(asked).toEqual(['Run ask?\n\n{\n  "word": "yes"\n}']);
  });

  it('refuses a tool that needs approval if the client cannot ask', async () => {
    const { client } = await connected(way, [requireApproval(echoAs('ask'), approveByClient)]);
    const result = await client.callTool({ name: 'ask', arguments: { word: 'yes' } });
    expect(result.isError).toBe(true);
    expect(textIn(result)).toBe(
      'Not run: this call to ask was not approved. The client cannot ask the user.',
    );
  });

  it('hides the error of a tool, and reports it', async () => {
    const errors: MillraceError[] = [];
    const { client } = await connected(way, [failing], {
      onError: (error) => void errors.push(error),
    });
    const result = await client.callTool({ name: 'fail' });
    expect(result.isError).toBe(true);
    expect(JSON.stringify(result)).toBe(
      JSON.stringify({ ...result, content: [{ type: 'text', text: "The tool 'fail' failed." }] }),
    );
    expect(errors.map(({ message }) => message)).toEqual(['postgres://user:secret@db is down']);
  });

  it('announces changed lists', async () => {
    const tools$ = new BehaviorSubject<readonly Tool[]>([echo]);
    const changed$ = new Subject<readonly string[]>();
    const { client } = await connected(way, tools$, {
      client: {
        listChanged: {
          tools: {
            debounceMs: 0,
            onChanged: (_error, tools) => changed$.next((tools ?? []).map(({ name }) => name)),
          },
        },
      },
    });
    expect((await client.listTools()).tools).toHaveLength(1);
    const changed = firstValueFrom(changed$);
    tools$.next([echo, echoAs('second')]);
    expect(await changed).toEqual(['echo', 'second']);
    const result = await client.callTool({ name: 'second', arguments: { word: 'two' } });
    expect(textIn(result)).toBe('You said two.');
  });

  it('serves an agent as a tool, with its text as progress', async () => {
    const model = scriptedModel([toolCall('echo', { word: 'x' })], [text('It is '), text('x.')]);
    const agent = createAgent({ name: 'helper', model, tools: [echo] });
    const { client } = await connected(way, agent, { description: 'Knows words.' });
    const { tools } = await client.listTools();
    expect(tools).toMatchObject([
      { name: 'helper', description: 'Knows words.', inputSchema: { required: ['question'] } },
    ]);
    expect(tools[0]?.annotations).toEqual({});
    const seen: unknown[] = [];
    const result = await client.callTool(
      { name: 'helper', arguments: { question: 'Which word?' } },
      { onprogress: ({ message }) => seen.push(message) },
    );
    expect(textIn(result)).toBe('It is x.');
    expect(seen.join('')).toBe('Calling echo.It is x.');
    expect(JSON.stringify(model.requests[0]?.messages)).toContain('Which word?');
  });
});

const echoAs = (name: string): Tool => ({ ...echo, name, idempotent: false });

const failing = tool({
  name: 'fail',
  description: 'Fails.',
  run: () => {
    throw new Error('postgres://user:secret@db is down');
  },
});

describe('T21: an agent that is served', () => {
  const helper = (tools: readonly Tool[]) =>
    createAgent({
      name: 'helper',
      tools,
      model: scriptedModel([toolCall('ask', { word: 'x' })], [text('Done.')]),
    });
  const ask = { name: 'helper', arguments: { question: '?' } };
  const ofAgent = { description: 'Helps.' };

  it('asks the user for approval while it works, with versions up to 2025', async () => {
    const ran: string[] = [];
    const tools = [requireApproval(recording(ran), approveByClient)];
    const { client } = await connected('stdio 2025', helper(tools), {
      ...ofAgent,
      form: () => 'accept',
    });
    expect(textIn(await client.callTool(ask))).toBe('Done.');
    expect(ran).toEqual(['x']);
  });

  it('cannot ask with the version of 2026: the tool is refused, and nothing runs twice', async () => {
    const ran: string[] = [];
    const asked: string[] = [];
    const tools = [requireApproval(recording(ran), approveByClient)];
    const { client } = await connected('http 2026', helper(tools), {
      ...ofAgent,
      form: (message) => {
        asked.push(message);
        return 'accept';
      },
    });
    expect(textIn(await client.callTool(ask))).toBe('Done.');
    expect([ran, asked]).toEqual([[], []]);
  });

  it('fails with a message for users, and without its cause', async () => {
    const model = { name: 'down', stream$: () => throwError(() => down) };
    const down = new MillraceError('server', 'https://key:secret@host is down');
    const errors: MillraceError[] = [];
    const { client } = await connected('stdio 2025', createAgent({ name: 'helper', model }), {
      ...ofAgent,
      onError: (error) => void errors.push(error),
    });
    const result = await client.callTool(ask);
    expect(result.isError).toBe(true);
    expect(textIn(result)).toBe('The service did not respond as expected. Please try again.');
    expect(errors[0]?.message).toBe(down.message);
  });
});

const recording = (ran: string[]): Tool =>
  tool({
    name: 'ask',
    description: 'Records.',
    input: word,
    run: ({ word: it }) => {
      ran.push(it);
      return it;
    },
  });

describe('T21: serveMcp', () => {
  it('applies layers and context values to each run', async () => {
    const place = contextKey<string>('place');
    const where = tool({ name: 'where', description: 'Is.', run: (_, it) => it.get(place) });
    const { client } = await connected('stdio 2025', [where], {
      context: [place.of('here')],
      use: [approval(approveByClient)],
      form: () => 'accept',
    });
    expect(textIn(await client.callTool({ name: 'where' }))).toBe('here');
  });

  it('says how much of a long input an approval does not show', async () => {
    const asked: string[] = [];
    const { client } = await connected('stdio 2025', [echo], {
      use: [approval(approveByClient)],
      form: (message) => {
        asked.push(message);
        return 'decline';
      },
    });
    await client.callTool({ name: 'echo', arguments: { word: 'x'.repeat(5_000) } });
    expect(asked[0]).toMatch(
      /^Run echo\?\n\n\{\n {2}"word": "x+…\n\[1016 more characters are not shown\.\]$/,
    );
  });

  it('shows the diff of a file tool for approval', async () => {
    const asked: string[] = [];
    const shown: Approver = (request) =>
      approveByClient(Object.assign({}, request, { diff: '-old\n+new\u202e' }));
    const { client } = await connected('stdio 2025', [requireApproval(echo, shown)], {
      form: (message) => {
        asked.push(message);
        return 'accept';
      },
    });
    await client.callTool({ name: 'echo', arguments: { word: 'x' } });
    expect(asked).toEqual(['Run echo?\n\n-old\n+new']);
  });

  it('shows the text that onError returns', async () => {
    const { client } = await connected('stdio 2025', [failing], {
      onError: ({ message }) => `Shown: ${message.length}`,
    });
    expect(textIn(await client.callTool({ name: 'fail' }))).toBe('Shown: 33');
  });

  it('shows media, files and links', async () => {
    const source = { kind: 'base64', mediaType: 'image/png', data: 'aGVsbG8=' } as const;
    const link = { kind: 'url', url: 'https://example.com/a.wav' } as const;
    const media = tool({
      name: 'media',
      description: 'Is.',
      run: () =>
        toolOutput({
          content: [
            { type: 'image', source },
            { type: 'audio', source: { ...source, mediaType: 'audio/wav' } },
            { type: 'audio', source: link },
            { type: 'file', source, name: 'a b.bin' },
          ],
        }),
    });
    const { client } = await connected('stdio 2025', [media]);
    expect((await client.callTool({ name: 'media' })).content).toEqual([
      { type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' },
      { type: 'audio', data: 'aGVsbG8=', mimeType: 'audio/wav' },
      { type: 'resource_link', uri: 'https://example.com/a.wav', name: 'audio' },
      {
        type: 'resource',
        resource: { uri: 'file:///a%20b.bin', blob: 'aGVsbG8=', mimeType: 'image/png' },
      },
    ]);
  });

  it('retries as the tool says, and hides the error only of the last attempt', async () => {
    let attempts = 0;
    const flaky = tool({
      name: 'flaky',
      description: 'Is.',
      retry: { attempts: 2, backoffMs: 0 },
      run: () => {
        attempts += 1;
        if (attempts % 2 === 1) throw transient(new Error('again'));
        return 'worked';
      },
    });
    const { client } = await connected('stdio 2025', [flaky]);
    expect(textIn(await client.callTool({ name: 'flaky' }))).toBe('worked');
  });

  it('gives names that every client accepts', async () => {
    const { client } = await connected('stdio 2025', [echoAs('größe messen')]);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['gr__e_messen']);
    const call = { name: 'gr__e_messen', arguments: { word: 'x' } };
    expect(textIn(await client.callTool(call))).toBe('You said x.');
  });

  it('serves the tools of another server', async () => {
    const inner = await overHttp([echo]);
    const outer = mcpTools({ name: 'inner', http: { url: inner }, prefix: '' });
    const { client } = await connected('http 2026', outer);
    const call = { name: 'echo', arguments: { word: 'twice' } };
    expect(textIn(await client.callTool(call))).toBe('You said twice.');
  });

  it.each(['http 2025', 'http 2026'] as const)('knows the user of a call over %s', async (way) => {
    const who = tool({ name: 'who', description: 'Is.', run: (_, it) => it.metadata['user'] });
    const url = await overHttp([who], {
      authorize: async (token) => Promise.resolve(token !== undefined && { user: token }),
    });
    const client = clientOf(way);
    const headers = { Authorization: 'Bearer ann' };
    await client.connect(
      new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }),
    );
    expect(textIn(await client.callTool({ name: 'who' }))).toBe('ann');
    await client.close();
  });

  it('errors with the error of the Observable of tools', async () => {
    const tools$ = new BehaviorSubject<readonly Tool[]>([echo]);
    const { end$ } = await connected('http 2025', tools$);
    tools$.error(new Error('lost'));
    expect(await firstValueFrom(end$)).toMatchObject({ name: 'MillraceError', message: 'lost' });
  });

  it('stops listening immediately, and errors if it cannot listen', async () => {
    const { listening, serving: first } = await serving([echo], { http: { port: 0 } });
    const url = new URL(listening.transport === 'http' ? listening.url : '');
    expect(url.hostname).toBe('127.0.0.1');
    const again = { http: { port: Number(url.port) } };
    await expect(serving([echo], again)).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining(`cannot listen on 127.0.0.1:${url.port}: `),
    });
    first.unsubscribe();
    await serving([echo], again);
  });

  it.each<[what: string, served: unknown, options: object, message: RegExp]>([
    ['neither way', [], {}, /either 'stdio' or 'http'/],
    ['both ways', [], { stdio: true, http: { port: 0 } }, /either 'stdio' or 'http'/],
    ['an unknown option', [], { stdio: true, port: 1 }, /no option 'port'/],
    ['an unknown option of HTTP', [], { http: { prot: 1 } }, /'http' has no option 'prot'/],
    ['a wrong port', [], { http: { port: 99_999 } }, /a port from 0 to 65535/],
    ['a public address', [], { http: { port: 0, host: '0.0.0.0' } }, /needs 'allowedHosts'/],
    ['no tools', 'tools', { stdio: true }, /a list of tools/],
    ['two tools of a name', [echo, echo], { stdio: true }, /two tools are named 'echo'/],
    ['a description of tools', [], { stdio: true, description: 'x' }, /is for an agent/],
  ])('refuses %s', (_what, served, options, message) => {
    expect(() => serveMcp(served as Tool[], options as ServeMcpOptions)).toThrow(message);
  });

  it('needs a description of an agent', () => {
    const agent = createAgent({ model: scriptedModel() });
    expect(() => serveMcp(agent, { stdio: true })).toThrow(/needs 'description'/);
  });
});
