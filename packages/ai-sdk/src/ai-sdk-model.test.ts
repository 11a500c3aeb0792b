import { describe, expect, it } from '@jest/globals';
import {
  type ContentBlock,
  createAgent,
  isMillraceError,
  type Message,
  type ModelRequest,
} from 'millrace';
import { lentContext } from 'millrace/testing';
import { inspect } from 'node:util';
import { lastValueFrom, toArray } from 'rxjs';
import { type AiSdkLanguageModel, type AiSdkModelOptions, aiSdkModel } from './index.js';
import { finish, type Played, playParts, text } from './parts.test-support.js';

const answer = [...text('1', 'Yes.'), finish()];

const ask = async (request: ModelRequest, options: AiSdkModelOptions = {}, played: Played = {}) => {
  const model = playParts([answer], played);
  await lastValueFrom(
    aiSdkModel(model, { retry: false, ...options })
      .stream$(request, lentContext())
      .pipe(toArray()),
  );
  return model.asked[0] as unknown as Record<string, never> & { prompt: Record<string, unknown>[] };
};
const user = (...content: ContentBlock[]): Message => ({ id: 'u', role: 'user', content });

describe('a request', () => {
  it('has the options of the call, and the settings of the model', async () => {
    const asked = await ask(
      {
        messages: [user({ type: 'text', text: 'Hi!' })],
        ...{ system: 'Be brief.', temperature: 0.5, maxTokens: 9, stopSequences: ['x'] },
        tools: [{ name: 'a b', description: 'd', inputSchema: { type: 'object' } }],
        toolChoice: { name: 'a b' },
      },
      {
        settings: { topK: 3, providerOptions: { acme: { x: 1 } } },
        builtInTools: { search: { type: 'provider', id: 'acme.search', args: { n: 1 } } },
      },
    );
    const name = (asked['tools'] as unknown as { name: string }[])[0]?.name;
    expect(name).toMatch(/^a_b_\w+$/);
    expect(asked).toMatchObject({
      ...{ topK: 3, temperature: 0.5, maxOutputTokens: 9, stopSequences: ['x'] },
      providerOptions: { acme: { x: 1 } },
      prompt: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'text', text: 'Hi!' }] },
      ],
      tools: [
        { type: 'function', name },
        { type: 'provider', id: 'acme.search', name: 'search', args: { n: 1 } },
      ],
      toolChoice: { type: 'tool', toolName: name },
    });
  });

  it('has media in the form of each version, and tool results with them', async () => {
    const inline = { kind: 'base64', mediaType: 'image/png', data: 'AQI=' } as const;
    const url = { kind: 'url', url: 'https://a.example/b.png' } as const;
    const supportedUrls = { 'image/*': [/^https:\/\/a\.example\//] };
    const messages: Message[] = [
      user({ type: 'image', source: inline }, { type: 'image', source: url }),
      {
        id: 'a',
        role: 'assistant',
        content: [{ type: 'tool_call', id: 't', name: 'draw', input: {} }],
      },
      {
        id: 'r',
        role: 'tool',
        content: [
          {
            type: 'tool_result',
            toolCallId: 't',
            isError: false,
            content: [{ type: 'image', source: inline }],
          },
        ],
      },
    ];
    const v3 = await ask({ messages }, {}, { supportedUrls });
    expect(v3.prompt[0]).toMatchObject({ content: [{ data: 'AQI=' }, { data: new URL(url.url) }] });
    expect(v3.prompt[2]).toMatchObject({
      content: [
        {
          toolName: 'draw',
          output: { type: 'content', value: [{ type: 'image-data', data: 'AQI=' }] },
        },
      ],
    });
    const v4 = await ask({ messages }, {}, { supportedUrls, version: 'v4' });
    expect(v4.prompt[0]).toMatchObject({
      content: [
        { data: { type: 'data', data: 'AQI=' } },
        { data: { type: 'url', url: new URL(url.url) } },
      ],
    });
    expect(v4.prompt[2]).toMatchObject({
      content: [{ output: { value: [{ type: 'file', data: { type: 'data', data: 'AQI=' } }] } }],
    });
  });

  it('with a URL that the provider does not fetch is refused: nothing is downloaded', async () => {
    const source = { kind: 'url', url: 'http://10.0.0.1/secret.png' } as const;
    const asked = ask({ messages: [user({ type: 'image', source })] });
    await expect(asked).rejects.toMatchObject({ code: 'invalidRequest', retryable: false });
  });
});

const failing = (error: unknown): AiSdkLanguageModel => ({
  ...playParts([]),
  doStream: () => Promise.reject(error),
});
const failureFor = async (error: unknown, options: AiSdkModelOptions = {}) =>
  createAgent({ model: aiSdkModel(failing(error), { retry: false, ...options }) })
    .call('Hi!')
    .then(
      () => undefined,
      (caught: unknown) => caught,
    );
const apiError = (fields: object) =>
  Object.assign(new Error('Slow down.'), { name: 'AI_APICallError', ...fields });

describe('an error of a provider', () => {
  it.each([
    [
      apiError({ statusCode: 429, responseHeaders: { 'Retry-After': '7' } }),
      { code: 'rateLimited', status: 429, retryAfterMs: 7_000 },
    ],
    [
      apiError({ statusCode: 429, data: { error: { code: 'insufficient_quota' } } }),
      { code: 'rateLimited', retryable: false },
    ],
    [
      apiError({ statusCode: 400, message: 'This prompt is too long.' }),
      { code: 'contextTooLong' },
    ],
    [
      apiError({ statusCode: 200, cause: Object.assign(new Error('x'), { code: 'ECONNRESET' }) }),
      { code: 'connection' },
    ],
    [
      apiError({ cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) }),
      { code: 'connection', retryable: true },
    ],
    [
      Object.assign(new Error('Set ACME_API_KEY.'), { name: 'AI_LoadAPIKeyError' }),
      { code: 'config', retryable: false },
    ],
    [
      new Error('Could not load the default credentials. Browse to https://cloud.google.com/'),
      { code: 'config', retryable: false },
    ],
    [
      Object.assign(new Error('Audio.'), { name: 'AI_UnsupportedFunctionalityError' }),
      { code: 'invalidRequest' },
    ],
    [
      Object.assign(new Error('Not JSON.'), { name: 'AI_JSONParseError' }),
      { code: 'invalidResponse' },
    ],
    [
      { type: 'overloaded_error', message: 'Busy.' },
      { code: 'server', retryable: true },
    ],
    ['Busy.', { code: 'server' }],
    [undefined, { code: 'unknown' }],
  ])('%#: %s', async (error, expected) => {
    expect(await failureFor(error)).toMatchObject(expected);
  });

  it('shows neither the request nor a key', async () => {
    const key = 'acme-0123456789abcdef';
    const error = apiError({
      message: `Wrong key ${key} or sk-proj-0123456789abcdefgh, x-api-key: own-4567, {"client_secret":"own-8901"}.`,
      ...{
        statusCode: 401,
        requestBodyValues: { prompt: 'private' },
        url: `https://x.example/?key=${key}`,
      },
      responseBody: key,
    });
    const caught = await failureFor(error, { secrets: [key] });
    const shown = inspect(caught, { depth: 20, showHidden: true });
    expect(isMillraceError(caught)).toBe(true);
    expect(shown).not.toMatch(/acme-0123|sk-proj|own-|private/);
  });
});

it('what is no model, and an unknown option, are config errors that name the fix', () => {
  const make =
    (model: unknown, options = {}) =>
    () =>
      aiSdkModel(model as AiSdkLanguageModel, options);
  expect(make('gpt-5')).toThrow(/takes a language model/);
  expect(make({ specificationVersion: 'v2' })).toThrow(/not of v2: update its package/);
  expect(make({ specificationVersion: 'v3' })).toThrow(/takes a language model/);
  expect(make(playParts([]), { maxRetries: 2 })).toThrow(/maxRetries/);
  expect(make(playParts([]), { settings: { topp: 1 } })).toThrow(/topp/);
  expect(make(playParts([]), { builtInTools: { x: { type: 'function' } } })).toThrow(
    /builtInTools/,
  );
});

it('warnings of the provider are reported', async () => {
  const warnings = [
    { type: 'unsupported', feature: 'topK', details: 'Use topP.' },
    { type: 'other', message: 'Hm.' },
  ];
  const model = aiSdkModel(playParts([[{ type: 'stream-start', warnings }, ...answer]]));
  const events = await lastValueFrom(createAgent({ model }).stream$('Hi!').pipe(toArray()));
  const messages = events.flatMap((it) => (it.type === 'warning' ? [it.message] : []));
  expect(messages).toEqual(["acme.chat: 'topK' is not supported: Use topP.", 'acme.chat: Hm.']);
});
