import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { isEvent } from 'millrace';
import { firstValueFrom, of } from 'rxjs';
import { mcp, mcpTools } from './index.js';
import { published, ran } from './servers.test-support.js';

type Inputs = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

const namesOf = async (server: Parameters<typeof mcpTools>[0]): Promise<readonly string[]> =>
  (await firstValueFrom(mcpTools(server))).map(({ name }) => name);

describe('the server everything', () => {
  const server = published('everything', ['stdio'], { prefix: '', resources: true, prompts: true });
  const inputs: Inputs = {
    echo: { message: 'hello' },
    'get-annotated-message': { messageType: 'success', includeImage: true },
    'get-env': {},
    'get-resource-links': { count: 2 },
    'get-resource-reference': { resourceType: 'Text', resourceId: 1 },
    'get-structured-content': { location: 'New York' },
    'get-sum': { a: 2, b: 3 },
    'get-tiny-image': {},
    'gzip-file-as-resource': { name: 'a.gz', data: 'data:,hello', outputType: 'resource' },
    'toggle-simulated-logging': {},
    'toggle-subscriber-updates': {},
    'trigger-long-running-operation': { duration: 0.05, steps: 5 },
    'simulate-research-query': { topic: 'water' },
    list_resources: {},
    read_resource: { uri: 'demo://resource/dynamic/text/1' },
    list_prompts: {},
    get_prompt: { name: 'args-prompt', arguments: { city: 'Oslo' } },
  };

  it('has only tools that are called here', async () => {
    expect([...(await namesOf(server))].sort()).toEqual(Object.keys(inputs).sort());
  });

  it('answers a call of each of its tools', async () => {
    const { results, events, warnings } = await ran([mcp(server)], Object.entries(inputs));
    const failed = events.flatMap((event) =>
      isEvent(event, 'postActing') && event.result.isError ? [event.toolCall.name] : [],
    );
    expect(failed).toEqual([]);
    // It requires a task.
    expect(results['simulate-research-query']).toMatch(/research/i);
    expect(warnings).toEqual([]);
    expect(results).toMatchObject({
      echo: 'Echo: hello',
      'get-sum': 'The sum of 2 and 3 is 5.',
      'get-resource-links': expect.stringMatching(/Resource: .* <demo:/),
      'get-resource-reference': expect.stringContaining('<demo://resource/dynamic/text/1>'),
      list_resources: expect.stringContaining('"uri":"demo://'),
      read_resource: expect.stringContaining('<demo://resource/dynamic/text/1>'),
      list_prompts: expect.stringContaining('args-prompt'),
      get_prompt: expect.stringContaining('Oslo'),
    });
    const resultOf = (name: string) =>
      events.find((event) => isEvent(event, 'postActing') && event.toolCall.name === name);
    expect(resultOf('get-tiny-image')).toMatchObject({
      result: { content: [{}, { type: 'image', source: { mediaType: 'image/png' } }, {}] },
    });
    expect(resultOf('get-structured-content')).toMatchObject({
      result: { details: { temperature: expect.any(Number) } },
    });
    expect(resultOf('gzip-file-as-resource')).toMatchObject({
      result: { content: [{ type: 'file', source: { mediaType: 'application/gzip' } }] },
    });
  });

  it('has more tools for a client that answers questions and model requests', async () => {
    const seen: unknown[] = [];
    const asks = published('everything', ['stdio'], {
      prefix: '',
      onElicit: ({ requestedSchema }) => {
        seen.push(Object.keys(requestedSchema.properties).length);
        return of({ action: 'accept', content: { name: 'Ada', email: 'ada@example.com' } });
      },
      onElicitUrl: ({ url, message }) => {
        seen.push([url, message]);
        return of(true);
      },
      onSample: ({ maxTokens }) =>
        of({
          model: 'mine',
          role: 'assistant',
          content: { type: 'text', text: `up to ${maxTokens}` },
        }),
    });
    const page = 'https://example.com/login';
    const more: Inputs = {
      'trigger-elicitation-request': {},
      'trigger-sampling-request': { prompt: 'Hello', maxTokens: 7 },
      'trigger-url-elicitation': { url: page, message: 'Log in.' },
    };
    const added = (await namesOf(asks)).filter((name) => !Object.hasOwn(inputs, name));
    expect([...added].sort()).toEqual(Object.keys(more));
    const { results } = await ran(
      [mcp(asks)],
      [
        ...Object.entries(more),
        ['trigger-url-elicitation', { url: 'file:///etc/passwd', message: 'Look.' }],
        ['trigger-url-elicitation', { url: 'https://bank.com@evil.example/', message: 'Look.' }],
      ],
    );
    expect(seen).toEqual([expect.any(Number), [page, 'Log in.']]);
    expect(results['trigger-elicitation-request']).toContain('Ada');
    expect(results['trigger-sampling-request']).toContain('up to 7');
    expect(results['trigger-url-elicitation']).toContain('It cannot be shown.');
  });

  it('reports the progress of a long operation', async () => {
    const { events } = await ran(
      [mcp(server)],
      [['trigger-long-running-operation', { duration: 0.05, steps: 5 }]],
    );
    const progress = events.flatMap((event) =>
      isEvent(event, 'actingChunk') ? [event.value] : [],
    );
    expect(progress[0]).toMatchObject({ progress: 1, total: 5 });
  });
});

describe('the server filesystem', () => {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'millrace-mcp-')));
  const at = (name: string): string => join(directory, name);
  writeFileSync(at('a.txt'), 'first\nsecond\n');
  writeFileSync(at('a.png'), 'no picture');
  afterAll(() => rmSync(directory, { recursive: true }));

  const server = published('filesystem', [directory], { prefix: '' });
  const inputs: Inputs = {
    read_file: { path: at('a.txt') },
    read_text_file: { path: at('a.txt'), head: 1 },
    read_media_file: { path: at('a.png') },
    read_multiple_files: { paths: [at('a.txt')] },
    write_file: { path: at('b.txt'), content: 'written' },
    edit_file: { path: at('a.txt'), edits: [{ oldText: 'second', newText: 'third' }] },
    create_directory: { path: at('folder') },
    list_directory: { path: directory },
    list_directory_with_sizes: { path: directory },
    directory_tree: { path: directory },
    move_file: { source: at('b.txt'), destination: at('folder/b.txt') },
    search_files: { path: directory, pattern: '**/*.txt' },
    get_file_info: { path: at('a.txt') },
    list_allowed_directories: {},
  };

  it('answers a call of each of its tools, and refuses what is outside', async () => {
    expect([...(await namesOf(server))].sort()).toEqual(Object.keys(inputs).sort());
    const { results, events } = await ran(
      [mcp(server)],
      ...Object.entries(inputs).map((call) => [call]),
      [['read_text_file', { path: '/etc/hostname', head: 2 }]],
    );
    const failed = events.flatMap((event) =>
      isEvent(event, 'postActing') && event.result.isError ? [event.toolCall.name] : [],
    );
    expect(failed).toEqual(['read_text_file']);
    expect(results).toMatchObject({
      read_file: 'first\nsecond\n',
      edit_file: expect.stringContaining('+third'),
      search_files: expect.stringContaining(at('a.txt')),
      list_allowed_directories: expect.stringContaining(directory),
      read_text_file: expect.stringContaining('Access denied'),
    });
  });
});
