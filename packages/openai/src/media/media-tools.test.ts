import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type AudioBlock,
  createAgent,
  isEvent,
  type MillraceError,
  type Tool,
  type ToolResultBlock,
} from 'millrace';
import {
  lentToolContext,
  marbles,
  scriptedModel,
  text,
  toolCall,
  toolContract,
} from 'millrace/testing';
import fc from 'fast-check';
import { lastValueFrom, Subject, takeUntil } from 'rxjs';
import { profiles } from '../vendors.js';
import { mediaFetch } from './media-fetch.js';
import { imageGenerator, textToSpeech, transcription } from './media-tools.js';
import { type Asked, closeServers, serving, splitEvents } from './server.test-support.js';

afterEach(closeServers);

const key = 'sk-secret-0123456789';
const settings = (baseURL: string) => ({ baseURL, apiKey: key, retry: { minMs: 0, jitter: 0 } });
const offline = settings('http://127.0.0.1:9/v1');

/** The result of a tool that a model calls once, and its progress. */
const resultOf = async (tool: Tool, input: Readonly<Record<string, unknown>>) => {
  const model = scriptedModel([toolCall(tool.name, input)], [text('Done.')]);
  const progress: unknown[] = [];
  let result: ToolResultBlock | undefined;
  for await (const event of createAgent({ model, tools: [tool] }).stream('Go.')) {
    if (isEvent(event, 'actingChunk')) progress.push(event.value);
    if (isEvent(event, 'postActing')) result = event.result;
  }
  if (result === undefined) throw new Error('The tool did not run.');
  return { ...result, progress };
};

const recording: AudioBlock = {
  type: 'audio',
  source: {
    kind: 'base64',
    mediaType: 'audio/wav',
    data: Buffer.from([0, 255, 13, 10]).toString('base64'),
  },
};

const answers: Readonly<Record<string, unknown>> = {
  '/v1/audio/speech': { data: 'AAAA' },
  '/v1/audio/transcriptions': { text: 'Hello.' },
  '/v1/images/generations': { data: [{ b64_json: 'AAAA' }] },
};

const answering = {
  ...offline,
  fetch: (url: string | URL | Request) =>
    Promise.resolve(Response.json(answers[new URL(String(url)).pathname])),
};

const tools: readonly (readonly [string, () => Tool, string])[] = [
  ['textToSpeech', () => textToSpeech(profiles.openai, 'm', answering), 'text'],
  [
    'transcription',
    () => transcription(profiles.openai, 'm', { ...answering, load$: () => [recording] }),
    'recording',
  ],
  ['imageGenerator', () => imageGenerator(profiles.openai, 'm', answering), 'prompt'],
];

for (const [title, create, field] of tools) {
  describe(title, () => {
    const samples = { valid: [{ [field]: 'a' }], invalid: [{}, { [field]: '' }, { [field]: 1 }] };
    for (const { name, run } of toolContract(create, samples)) it(name, run);
  });
}

describe('textToSpeech', () => {
  it('asks for speech, and makes a recording of bytes that are split anywhere', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 9 }),
        async (bytes, size) => {
          const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
            bytes.slice(at * size, (at + 1) * size),
          );
          const body = new ReadableStream<Uint8Array>({
            start: (controller) => {
              for (const piece of pieces) controller.enqueue(piece);
              controller.close();
            },
          });
          const answer = () =>
            Promise.resolve(new Response(body, { headers: { 'content-type': 'audio/mpeg' } }));
          const response = await mediaFetch(answer)('http://a.invalid', { body: '{}' });
          expect(await response.json()).toEqual({
            mediaType: 'audio/mpeg',
            data: Buffer.from(bytes).toString('base64'),
          });
        },
      ),
      { numRuns: 50 },
    );
    const { baseURL, asked } = await serving((_, response) => {
      response.writeHead(200, { 'content-type': 'audio/mpeg' });
      response.write('so');
      response.end('und');
    });
    const tool = textToSpeech(profiles.openai, 'tts-1', { ...settings(baseURL), voice: 'coral' });
    const { content, isError } = await resultOf(tool, { text: 'Hello' });
    expect(isError).toBe(false);
    expect(content).toEqual([
      { type: 'audio', source: { kind: 'base64', mediaType: 'audio/mpeg', data: btoa('sound') } },
    ]);
    expect(asked[0]).toMatchObject({
      path: '/v1/audio/speech',
      headers: { authorization: `Bearer ${key}` },
      body: { model: 'tts-1', voice: 'coral', response_format: 'mp3', input: 'Hello' },
    });
  });

  it('X4: retries an overload, and reports an error without the key', async () => {
    const { baseURL, asked } = await serving(({ nth }, response) => {
      response.writeHead(nth === 1 ? 503 : 401, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: `Bad key ${key}` } }));
    });
    const tool = textToSpeech(profiles.openai, 'tts-1', settings(baseURL));
    const { content, isError } = await resultOf(tool, { text: 'Hello' });
    expect(asked).toHaveLength(2);
    expect(isError).toBe(true);
    expect(JSON.stringify(content)).not.toContain(key);
  });

  it('X6: is tooLarge over the cap', async () => {
    const { baseURL } = await serving((_, response) =>
      response.writeHead(200, { 'content-type': 'audio/wav' }).end(Buffer.alloc(1_000)),
    );
    const options = { ...settings(baseURL), caps: { eventLength: 500 } };
    const { content, isError } = await resultOf(textToSpeech(profiles.openai, 'm', options), {
      text: 'a',
    });
    expect(isError).toBe(true);
    expect(JSON.stringify(content)).toContain('caps.eventLength');
  });

  it('I5: aborts the request in the tick in which the tool is cut', async () => {
    const cut = new Subject<void>();
    let aborted: boolean | undefined;
    const sent = new Subject<AbortSignal>();
    const fetch: typeof globalThis.fetch = (_, init) => {
      if (init?.signal) sent.next(init.signal);
      return new Promise(() => undefined);
    };
    const tool = textToSpeech(profiles.openai, 'm', { ...offline, fetch });
    const done = new Promise<void>((resolve) => {
      sent.subscribe((signal) => {
        expect(signal.aborted).toBe(false);
        cut.next();
        aborted = signal.aborted;
        resolve();
      });
    });
    tool.run$({ text: 'a' }, lentToolContext()).pipe(takeUntil(cut)).subscribe();
    await done;
    expect(aborted).toBe(true);
  });
});

describe('transcription', () => {
  const boundaryOf = ({ headers }: Asked): string =>
    /boundary=(.+)$/u.exec(headers['content-type'] ?? '')?.[1] ?? '';

  it('I5: unsubscribes from a recording that still loads', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const recording$ = cold<AudioBlock>('-----a');
      const tool = transcription(profiles.openai, 'm', { ...offline, load$: () => recording$ });
      expectObservable(tool.run$({ recording: 'a' }, lentToolContext()), '^--!').toBe('---');
      expectSubscriptions(recording$.subscriptions).toBe('^--!');
    });
  });

  it('sends the bytes as a form, and returns the transcript', async () => {
    const { baseURL, asked } = await serving((_, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"text":"Hello."}'),
    );
    const tool = transcription(profiles.openai, 'whisper-1', {
      ...settings(baseURL),
      language: 'en',
      load$: (name, { callId }) => (name === 'memo' && callId !== '' ? [recording] : []),
    });
    expect(await resultOf(tool, { recording: 'memo' })).toMatchObject({
      isError: false,
      content: [{ type: 'text', text: 'Hello.' }],
    });
    const [request] = asked;
    expect(request?.path).toBe('/v1/audio/transcriptions');
    const form = request?.bytes.toString('latin1') ?? '';
    expect(request && form.split(`--${boundaryOf(request)}`)).toHaveLength(6);
    expect(form).toContain('name="model"\r\n\r\nwhisper-1\r\n');
    expect(form).toContain('name="language"\r\n\r\nen\r\n');
    expect(form).toContain(
      'filename="file.wav"\r\nContent-Type: audio/wav\r\n\r\n\u0000\u00ff\r\n\r\n',
    );
    expect(await resultOf(tool, { recording: 'other' })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("no recording 'other'") }],
    });
    expect(asked).toHaveLength(1);
  });

  it('sends lists and objects of the body as the SDK of OpenAI does', async () => {
    const fields: (readonly [string, unknown])[] = [];
    const body = {
      timestamp_granularities: ['word', 'segment'],
      'include[]': ['logprobs'],
      chunking_strategy: { type: 'server_vad', silence_duration_ms: 200 },
    };
    const tool = transcription(profiles.openai, 'm', {
      ...offline,
      body,
      load$: () => [recording],
      fetch: (_, init) => {
        if (init?.body instanceof FormData) fields.push(...init.body.entries());
        return Promise.resolve(Response.json({ text: 'Hello.' }));
      },
    });
    await lastValueFrom(tool.run$({ recording: 'a' }, lentToolContext()));
    expect(fields.slice(2, -1)).toEqual([
      ['timestamp_granularities[]', 'word'],
      ['timestamp_granularities[]', 'segment'],
      ['include[]', 'logprobs'],
      ['chunking_strategy[type]', 'server_vad'],
      ['chunking_strategy[silence_duration_ms]', '200'],
    ]);
  });

  it.each<AudioBlock['source']>([
    { kind: 'base64', mediaType: 'audio/wav', data: 'no base64!' },
    { kind: 'url', url: 'https://example.com/a.wav' },
  ])('names the fix for a recording of $kind that it cannot send', async (source) => {
    const load$ = (): readonly AudioBlock[] => [{ type: 'audio', source }];
    const tool = transcription(profiles.openai, 'm', { ...offline, load$ });
    expect(await resultOf(tool, { recording: 'a' })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("'load$' has to emit the recording in base64") }],
    });
  });

  it.each<[string, readonly unknown[]]>([
    [
      'OpenAI',
      [
        { type: 'transcript.text.delta', delta: 'Hel' },
        { type: 'transcript.text.delta', delta: 'lo.' },
        { type: 'transcript.text.done', text: 'Hello.' },
      ],
    ],
    [
      'vLLM',
      [{ choices: [{ delta: { content: 'Hel' } }] }, { choices: [{ delta: { content: 'lo.' } }] }],
    ],
  ])('streams progress from %s', async (_, events) => {
    const { baseURL } = await serving((__, response) => splitEvents(response, events, 11));
    const options = { ...settings(baseURL), stream: true, load$: () => [recording] };
    const result = await resultOf(transcription(profiles.openai, 'm', options), { recording: 'a' });
    expect(result.progress).toEqual(['Hel', 'lo.']);
    expect(result.content).toEqual([{ type: 'text', text: 'Hello.' }]);
  });
});

describe('imageGenerator', () => {
  it.each([
    [{ b64_json: 'UklGRgAA' }, { kind: 'base64', mediaType: 'image/webp', data: 'UklGRgAA' }],
    [{ url: 'https://example.com/a.png' }, { kind: 'url', url: 'https://example.com/a.png' }],
  ])('makes an image of %j', async (image, source) => {
    const { baseURL, asked } = await serving((_, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ data: [image] })),
    );
    const tool = imageGenerator(profiles.openai, 'gpt-image-1', {
      ...settings(baseURL),
      size: '64x64',
    });
    const { content } = await resultOf(tool, { prompt: 'A mill' });
    expect(content).toEqual([{ type: 'image', source }]);
    expect(asked[0]?.body).toEqual({ model: 'gpt-image-1', size: '64x64', prompt: 'A mill' });
  });

  it('reports an answer without an image', async () => {
    const { baseURL } = await serving((_, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"data":[]}'),
    );
    const tool = imageGenerator(profiles.openai, 'm', settings(baseURL));
    const run = lastValueFrom(tool.run$({ prompt: 'a' }, lentToolContext()));
    await expect(run.catch((error: MillraceError) => error.code)).resolves.toBe('invalidResponse');
  });

  it.each(['javascript:alert(1)', 'file:///etc/passwd', 'a.png'])(
    'takes no image from %s',
    async (url) => {
      const fetch = () => Promise.resolve(Response.json({ data: [{ url }] }));
      const tool = imageGenerator(profiles.openai, 'm', { ...offline, fetch });
      const run = lastValueFrom(tool.run$({ prompt: 'a' }, lentToolContext()));
      await expect(run).rejects.toThrow('neither base64 nor at a URL');
    },
  );

  it('names a wrong option', () => {
    expect(() =>
      imageGenerator(profiles.openai, 'm', { ...offline, ...Object.fromEntries([['sise', 'x']]) }),
    ).toThrow('size');
  });
});
