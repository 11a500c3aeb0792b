import { describe, expect, it } from '@jest/globals';
import { isEvent, type ToolOutput, textOf } from 'millrace';
import fc from 'fast-check';
import { firstValueFrom, map } from 'rxjs';
import { outputOf, outputOfPrompt, outputOfResource } from './content.js';
import { mcp } from './index.js';
import { createEnter, createMessageReader } from './message-reader.js';
import { ran } from './servers.test-support.js';
import { answering, at, send, stream, web } from './web.test-support.js';

const said = { type: 'text', text: 'Payment done.' };
const png = 'iVBORw0KGgoAAAANSUhEUg==';
const shown = (result: unknown): string => textOf(outputOf(result, 100_000));
const typesOf = ({ content }: ToolOutput): readonly string[] =>
  content.map((block) =>
    block.type === 'text' ? 'text' : block.source.kind === 'base64' ? block.source.mediaType : '',
  );

/** Results of tools that servers send. All of them say that the payment is done. */
const odd: readonly (readonly [what: string, result: unknown])[] = [
  ['an unknown block beside text', { content: [{ type: 'ui', uri: 'x' }, said] }],
  ['a block of type error', { content: [{ type: 'error', text: 'Payment done.' }], isError: true }],
  ['a block of type json', { content: [{ type: 'json', json: { status: 'Payment done.' } }] }],
  ['a block without a type', { content: [{ text: 'Payment done.' }] }],
  ['text that is not a string', { content: [{ type: 'text', text: { status: 'Payment done.' } }] }],
  ['null beside text', { content: [null, said, 7] }],
  ['content as a string', { content: 'Payment done.' }],
  ['content as one block', { content: said }],
  ['content as a list of strings', { content: ['Payment done.'] }],
  ['content as an object', { content: { status: 'Payment done.' } }],
  ['no content', { structuredContent: { status: 'Payment done.' } }],
  ['null as content', { content: null, structuredContent: { status: 'Payment done.' } }],
  ['empty text', { content: [{ type: 'text', text: ' ' }], structuredContent: 'Payment done.' }],
  [
    'only a picture',
    {
      content: [{ type: 'image', data: png, mimeType: 'image/png' }],
      structuredContent: ['Payment done.'],
    },
  ],
  ['a structured list', { content: [said], structuredContent: [1, 2] }],
  ['a structured null', { content: [said], structuredContent: null, isError: null, _meta: null }],
  ['wrong annotations', { content: [{ ...said, annotations: 'high', _meta: 7 }] }],
  ['a result of 2024', { toolResult: 'Payment done.' }],
  ['a result of no form', { status: 'Payment done.' }],
  ['a string', 'Payment done.'],
  ['a list', [said]],
  [
    'a resource without a URI',
    { content: [{ type: 'resource', resource: { text: 'Payment done.' } }] },
  ],
  ['a link without a URI', { content: [{ type: 'resource_link', name: 'Payment done.' }] }],
  ['a link without a name', { content: [{ type: 'resource_link', uri: 'a:b' }, said] }],
  ['a picture without data', { content: [{ type: 'image', mimeType: 'image/png' }, said] }],
  [
    'a picture of no base64',
    { content: [{ type: 'image', data: '{}', mimeType: 'image/png' }, said] },
  ],
];

describe('T20: a result that violates the protocol', () => {
  it.each(odd)('%s: shows the model what came', (_what, result) => {
    expect(shown(result)).toContain('Payment done.');
    expect(shown(result)).not.toMatch(/invalid_|expected/i);
  });

  it.each(odd)('%s: also over HTTP, by both kinds of response', async (_what, result) => {
    const url = await answering({ 'tools/call': () => result });
    const streaming = await web({
      'tools/call': ({ id }, _request, response) => {
        stream(response)({ id, result });
        response.end();
      },
    });
    const servers = [mcp(at(url)), mcp({ ...at(streaming), name: 'stream' })];
    const { results } = await ran(servers, [['web_use'], ['stream_use']]);
    expect(results['web_use']).toContain('Payment done.');
    expect(results['stream_use']).toBe(results['web_use']);
  });

  it.each<[value: unknown, isError: boolean]>([
    [true, true],
    ['true', true],
    [false, false],
    ['false', false],
    [null, false],
    [1, false],
  ])('isError %j is %j', (isError, expected) => {
    expect(outputOf({ content: [], isError }, 100).isError).toBe(expected);
  });

  it.each<[what: string, data: unknown, mimeType: unknown, types: readonly string[]]>([
    ['with a wrong type', png, 'text/plain', ['image/png']],
    ['without a type', png, undefined, ['image/png']],
    ['with a type that is none', png, 7, ['image/png']],
    ['as a data URL', `data:image/png;base64,${png}`, 'image/png', ['image/png']],
    ['with line breaks', `${png.slice(0, 5)}\n${png.slice(5)}`, 'image/png', ['image/png']],
    ['without padding', png.replace(/=+$/, ''), 'image/png', ['image/png']],
    ['that is a JPEG', '/9j/4AAQSkZJRg==', 'image/png', ['image/jpeg']],
    ['of unknown bytes', 'AAAA', 'application/x-thing', ['application/x-thing']],
    ['of no bytes', '', 'image/png', ['text']],
    ['of padding only', '====', 'image/png', ['text']],
    ['that is no base64', '<svg/>', 'image/png', ['text']],
    ['that is cut off', 'AAAAA', 'image/png', ['text']],
  ])('a picture %s is what its bytes say, or a note', (_what, data, mimeType, types) => {
    expect(typesOf(outputOf({ content: [{ type: 'image', data, mimeType }] }, 1_000))).toEqual(
      types,
    );
  });

  it('X6: an unknown block is shown up to a limit, even if it is deeply nested', () => {
    const block = { type: 'dump', much: 'x'.repeat(1_000_000) };
    expect(shown({ content: [block, said] }).length).toBeLessThan(21_000);
    expect(shown({ content: [block, said] })).toContain('Payment done.');
    let deep: unknown = {};
    for (let level = 0; level < 20_000; level += 1) deep = { deep };
    expect(shown({ content: [{ type: 'dump', deep }, said] })).toContain('Payment done.');
    expect(shown({ structuredContent: deep })).toContain('too deep');
  });

  it.each(['=', ' ', '\n', '-', '_', 'A=', 'data:', 'data:;base64,'])(
    'X13: base64 with %j a million times cannot block the process',
    (part) => {
      const start = performance.now();
      const data = `a${part.repeat(1_000_000 / part.length)}<`;
      expect(typesOf(outputOf({ content: [{ type: 'image', data }] }, 1_000))).toEqual(['text']);
      expect(performance.now() - start).toBeLessThan(2_000);
    },
  );

  it('has an output for any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        for (const result of [
          one,
          { content: one, structuredContent: other },
          { content: [one, other, said] },
        ]) {
          expect(outputOf(result, 1_000).content.length).toBeGreaterThanOrEqual(0);
          outputOfResource(result, 1_000);
          outputOfPrompt(result, 1_000);
        }
        expect(shown({ content: [one, other, said] })).toContain('Payment done.');
      }),
    );
  });

  it.each<[what: string, output: ToolOutput, text: string]>([
    ['a resource as a string', outputOfResource({ contents: 'a' }, 99), 'a'],
    ['one part', outputOfResource({ contents: { uri: 'a:b', text: 'c' } }, 99), '<a:b>\nc'],
    [
      'a part of no form',
      outputOfResource({ contents: [7, { uri: 'a:b', text: 'c' }] }, 99),
      '7<a:b>\nc',
    ],
    ['no contents', outputOfResource({}, 99), ''],
    ['a message as a string', outputOfPrompt({ messages: ['a'] }, 99), 'a'],
    [
      'content as a string',
      outputOfPrompt({ messages: [{ role: 'user', content: 'a' }] }, 99),
      '[user]a',
    ],
    [
      'many blocks',
      outputOfPrompt({ messages: [{ role: 7, content: [said, { type: 'x' }] }] }, 99),
      '[user]Payment done.{"type":"x"}',
    ],
    ['no messages', outputOfPrompt({ description: 7 }, 99), ''],
  ])('%s is read as well', (_what, output, text) => {
    expect(textOf(output)).toBe(text);
  });
});

describe('T20: a message that violates the protocol', () => {
  const listed = async (entries: unknown, more: object = {}) => {
    const url = await answering({ 'tools/list': () => ({ tools: entries, ...more }) });
    return ran([mcp(at(url))]);
  };
  const good = { name: 'use', description: 'Is use.', inputSchema: { type: 'object' } };

  it('a bad entry of a list of tools costs that tool only, and is a warning', async () => {
    const { tools, warnings } = await listed([
      good,
      null,
      'use',
      { description: 'Has no name.' },
      { name: 'text', inputSchema: { type: 'string' } },
      {
        name: 'last',
        description: null,
        inputSchema: null,
        annotations: 'none',
        title: 7,
        icons: {},
        outputSchema: { type: 'array' },
        _meta: [],
        execution: 'never',
      },
    ]);
    expect(tools[0]).toEqual(['web_use', 'web_last']);
    expect(warnings).toEqual([
      "The MCP server 'web': entry 2 of its tools is left out: it is not an object.",
      "The MCP server 'web': entry 3 of its tools is left out: it is not an object.",
      "The MCP server 'web': entry 4 of its tools is left out: it has no name.",
      "The MCP server 'web': entry 5 of its tools is left out: the input of 'text' is not an object.",
    ]);
  });

  it.each<[what: string, more: object]>([
    ['null as the cursor', { nextCursor: null }],
    ['_meta of another type', { _meta: 'none' }],
  ])('a list with %s is read', async (_what, more) => {
    expect((await listed([good], more)).tools[0]).toEqual(['web_use']);
  });

  it.each<[what: string, list: unknown]>([
    ['null', null],
    ['an object', {}],
  ])('%s instead of a list has no tools', async (_what, list) => {
    expect((await listed(list)).tools[0]).toEqual([]);
  });

  it('null fields in a handshake and next to a result are ignored', async () => {
    const url = await web({
      initialize: ({ id }, _request, response) =>
        send(response, 200, {
          jsonrpc: '2.0',
          id,
          error: null,
          result: {
            protocolVersion: '2025-06-18',
            capabilities: { tools: {}, logging: null },
            serverInfo: { name: 'x', version: null, icons: null },
            instructions: null,
            _meta: null,
          },
        }),
      'tools/call': ({ id }, _request, response) =>
        send(response, 200, {
          jsonrpc: '2.0',
          id,
          error: null,
          result: { content: [said], _meta: null },
        }),
    });
    expect((await ran([mcp(at(url))], [['web_use']])).results['web_use']).toBe('Payment done.');
  });

  it.each<[what: string, error: unknown, text: string]>([
    ['a string', 'No such tool.', 'No such tool.'],
    ['without a code', { message: 'No such tool.' }, 'No such tool.'],
    ['with a code as a string', { code: '-32000', message: 'No such tool.' }, 'No such tool.'],
    ['without a message', { code: -32000, data: 'No such tool.' }, 'No such tool.'],
  ])('an error %s reaches the model', async (_what, error, text) => {
    const url = await web({
      'tools/call': (_message, _request, response) =>
        // Without an id, as for a request that could not be read.
        send(response, 200, { jsonrpc: '2.0', id: null, error }),
    });
    expect((await ran([mcp(at(url))], [['web_use']])).results['web_use']).toContain(text);
  });

  it('progress of other types is read or ignored', async () => {
    const url = await web({
      'tools/call': (message, _request, response) => {
        const params = message['params'] as { _meta: { progressToken: unknown } };
        const { progressToken } = params._meta;
        const write = stream(response);
        for (const progress of [
          { progressToken, progress: '1', total: 'many', message: 7 },
          { progressToken, progress: null },
          { progress: 2 },
          null,
          { progressToken: String(progressToken), progress: 3, total: null },
        ]) {
          write({ method: 'notifications/progress', params: progress });
        }
        write({ method: 'notifications/unheard', params: 'of' });
        // The SDK drops what arrives together with the result.
        setTimeout(() => {
          write({ id: message['id'], result: { content: [said] } });
          response.end();
        }, 50);
      },
    });
    const { results, events } = await ran([mcp(at(url))], [['web_use']]);
    expect(results['web_use']).toBe('Payment done.');
    expect(events.flatMap((event) => (isEvent(event, 'actingChunk') ? [event.value] : []))).toEqual(
      [{ progress: 1 }, { progress: 3 }],
    );
  });

  it('lists of resources and prompts lose bad entries only', async () => {
    const url = await answering({
      initialize: () => ({
        protocolVersion: '2025-06-18',
        capabilities: { resources: {}, prompts: {} },
        serverInfo: { name: 'x', version: '1' },
      }),
      'resources/list': () => ({
        resources: [
          { uri: 'a:b' },
          {},
          { uri: 7 },
          { uri: 'c:d', name: 'd', size: 'big', mimeType: null },
        ],
      }),
      'prompts/list': () => ({
        prompts: [
          { name: 'a', arguments: 'none' },
          null,
          { name: 'b', arguments: [{ name: 'x', required: 'yes' }, 'y'] },
        ],
      }),
    });
    const servers = mcp(at(url, {}, { resources: true, prompts: true }));
    const { results } = await ran([servers], [['web_list_resources'], ['web_list_prompts']]);
    expect(results['web_list_resources']).toBe(
      '{"uri":"a:b","name":"a:b"}\n{"uri":"c:d","name":"d"}',
    );
    expect(results['web_list_prompts']).toBe(
      '{"name":"a","args":[]}\n{"name":"b","args":[{"name":"x"}]}',
    );
  });

  it('X6: remembers a limited number of reasons', () => {
    const reader = createMessageReader(createEnter());
    reader.sent({ id: 1, method: 'tools/list' });
    reader.received({ id: 1, result: { tools: Array(1_000).fill(null) } });
    expect(reader.leftOut()).toHaveLength(20);
    expect(reader.leftOut()).toEqual([]);
  });
});

describe('T20: pages of MCP Apps', () => {
  const page = {
    uri: 'ui://pay/form',
    mimeType: 'text/html;profile=mcp-app',
    text: '<script>steal()</script>',
  };

  it('of a result are in its details, and never shown to the model', async () => {
    const content = [{ type: 'resource', resource: page }, said];
    const url = await answering({
      'tools/call': () => ({ content, structuredContent: { sum: 3 } }),
    });
    const { events, results } = await ran([mcp(at(url))], [['web_use']]);
    expect(results['web_use']).toBe('[The page <ui://pay/form> is for the user.]Payment done.');
    expect(events.find((event) => isEvent(event, 'postActing'))).toMatchObject({
      result: { details: { pages: [page], structuredContent: { sum: 3 } } },
    });
  });

  it.each([{ ui: { resourceUri: page.uri } }, { 'ui/resourceUri': page.uri }])(
    'of a tool are listed, read by the program, and named in details of results: %j',
    async (_meta) => {
      const seen: unknown[] = [];
      const url = await answering({
        initialize: ({ params }) => {
          seen.push(params);
          return {
            protocolVersion: '2025-06-18',
            capabilities: { tools: {}, resources: {} },
            serverInfo: { name: 'x', version: '1' },
          };
        },
        'tools/list': () => ({
          tools: [
            { name: 'use', inputSchema: { type: 'object' }, _meta },
            {
              name: 'other',
              inputSchema: { type: 'object' },
              _meta: { ui: { resourceUri: 'https://evil.example' } },
            },
          ],
        }),
        'resources/read': () => ({ contents: [page] }),
      });
      const servers = mcp(at(url, {}, { apps: true }));
      const pages$ = servers.servers$.pipe(map(([server]) => server));
      const held = pages$.subscribe();
      const { events } = await ran([servers], [['web_use']]);
      const server = await firstValueFrom(pages$);
      expect(server?.pages).toEqual([{ tool: 'web_use', uri: page.uri }]);
      expect(await firstValueFrom(servers.resource$('web', page.uri))).toEqual([page]);
      expect(events.find((event) => isEvent(event, 'postActing'))).toMatchObject({
        result: { details: { pages: [{ uri: page.uri }] } },
      });
      expect(seen).toMatchObject([
        {
          capabilities: {
            extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: [page.mimeType] } },
          },
        },
      ]);
      held.unsubscribe();
    },
  );
});
