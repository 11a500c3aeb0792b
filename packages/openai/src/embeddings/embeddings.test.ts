import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { MillraceError } from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
import fc from 'fast-check';
import { lastValueFrom } from 'rxjs';
import { profiles } from '../vendors.js';
import { embeddings, type EmbeddingsOptions } from './embeddings.js';

interface Asked {
  readonly path: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: Readonly<Record<string, unknown>>;
  readonly texts: readonly string[];
}

type Respond = (asked: Asked, response: ServerResponse, nth: number) => void;

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

const key = 'sk-secret-0123456789';

/** A server that answers each request, and an embedder that asks it. */
const serving = async (respond: Respond, options: EmbeddingsOptions = {}) => {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = parsedJson(Buffer.concat(chunks).toString());
      if (!isRecord(body) || !Array.isArray(body['input'])) throw new Error('not a request');
      const input: readonly string[] = body['input'];
      const it = { path: request.url, headers: request.headers, body, texts: input };
      asked.push(it);
      respond(it, response, asked.length);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const embedder = embeddings(profiles.openai, 'embed-1', {
    baseURL: `http://127.0.0.1:${port}/v1`,
    apiKey: key,
    retry: { minMs: 0, jitter: 0 },
    ...options,
  });
  const embed = (texts: readonly string[]) => lastValueFrom(embedder.embed$(texts));
  const errorOf = (texts: readonly string[]): Promise<MillraceError> =>
    embed(texts).then(
      (vectors) => Promise.reject(new Error(`There are vectors: ${JSON.stringify(vectors)}`)),
      (error: MillraceError) => error,
    );
  return { asked, embedder, embed, errorOf };
};

/** The length of a string, twice. */
const vectorOf = (text: string): readonly number[] => [text.length, text.length / 2];

const send = (response: ServerResponse, body: unknown, status = 200): void => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
};

const answer = (vectors: readonly unknown[]) => ({
  object: 'list',
  data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
  usage: { prompt_tokens: 7, total_tokens: 7 },
});

const good: Respond = ({ texts }, response) => send(response, answer(texts.map(vectorOf)));

const base64 = (vector: readonly number[]): string =>
  Buffer.from(Float32Array.from(vector).buffer).toString('base64');

describe('embeddings', () => {
  it('asks for the vectors of texts, with the key, and emits them once', async () => {
    const used: unknown[] = [];
    const { asked, embed, embedder } = await serving(good, {
      dimensions: 2,
      encoding: 'float',
      body: { user: 'u' },
      onUsage: (usage) => used.push(usage),
    });
    expect(await embed(['four', 'lone \ud800', ''])).toEqual([
      [4, 2],
      [6, 3],
      [1, 0.5],
    ]);
    expect(asked).toMatchObject([
      {
        path: '/v1/embeddings',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: { model: 'embed-1', dimensions: 2, encoding_format: 'float', user: 'u' },
        texts: ['four', 'lone \ufffd', ' '],
      },
    ]);
    expect(used).toEqual([{ inputTokens: 7 }]);
    expect(embedder.id).toBe('embed-1/2');
  });

  it('asks nothing for no texts, and nothing before it is subscribed to', async () => {
    const { asked, embed, embedder } = await serving(good);
    embedder.embed$(['x']);
    expect(await embed([])).toEqual([]);
    expect(asked).toEqual([]);
  });

  it('reads base64, and vectors in any order', async () => {
    const { embed } = await serving(({ texts }, response) => {
      const { data, ...rest } = answer(texts.map((text) => base64(vectorOf(text))));
      send(response, { ...rest, data: data.toReversed() });
    });
    expect(await embed(['a', 'bb', 'ccc'])).toEqual(['a', 'bb', 'ccc'].map(vectorOf));
  });

  it('takes the order of the answer if it has no index', async () => {
    const { embed } = await serving(({ texts }, response) => {
      send(response, { data: texts.map((text) => ({ embedding: vectorOf(text) })) });
    });
    expect(await embed(['a', 'bb'])).toEqual(['a', 'bb'].map(vectorOf));
  });

  it('counts an empty text, and sends one beyond the limit alone', async () => {
    const { asked, embed } = await serving(good, { batchTokens: 10 });
    await embed(['x'.repeat(31), '', '']);
    expect(asked.map(({ texts }) => texts.length)).toEqual([1, 2]);
  });

  it('sends any texts in batches within both limits, in order', async () => {
    const { asked, embed } = await serving(good, { batchSize: 4, batchTokens: 10 });
    const text = fc.string({ unit: 'grapheme', maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 12 }), async (texts) => {
        asked.length = 0;
        const sent = texts.map((it) => (it === '' ? ' ' : it));
        expect(await embed(texts)).toEqual(sent.map(vectorOf));
        expect(asked.flatMap((it) => it.texts)).toEqual(sent);
        for (const { texts: batch } of asked) {
          const bytes = batch.reduce((sum, it) => sum + Buffer.byteLength(it), 0);
          expect(batch.length <= 4 && (batch.length === 1 || bytes <= 30)).toBe(true);
        }
      }),
      { numRuns: 30 },
    );
  });

  it.each<[string, (texts: readonly string[]) => unknown, string]>([
    ['too few vectors', () => answer([[1, 2]]), '1 vectors for 2 texts'],
    ['no vectors', () => ({ object: 'list' }), 'no list of vectors'],
    [
      'vectors of different lengths',
      () => answer([[1, 2], [3]]),
      'a vector of 1 dimensions instead of 2',
    ],
    ['empty vectors', () => answer([[], []]), 'a vector of 0 dimensions'],
    [
      'numbers that are null',
      () =>
        answer([
          [1, null],
          [1, 2],
        ]),
      'not a list of numbers',
    ],
    ['NaN in base64', () => answer([base64([NaN, 1]), base64([1, 2])]), 'not a list of numbers'],
    ['base64 of half a number', () => answer(['AAAA', 'AAAA']), 'not a list of numbers'],
    ['text', () => answer(['not base64!', 'x']), 'not a list of numbers'],
    [
      'a repeated index',
      () => ({
        data: [
          { index: 0, embedding: [1] },
          { index: 0, embedding: [1] },
        ],
      }),
      'the index 0',
    ],
    [
      'an index out of range',
      () => ({
        data: [
          { index: 0, embedding: [1] },
          { index: 2, embedding: [1] },
        ],
      }),
      'the index 2',
    ],
    [
      'an index that is an object',
      () => ({ data: [{ index: {}, embedding: [1] }, {}] }),
      'the index',
    ],
  ])('errors with invalidResponse if it gets %s', async (_, body, message) => {
    const { asked, errorOf } = await serving((it, response) => send(response, body(it.texts)));
    expect(await errorOf(['a', 'b'])).toMatchObject({
      code: 'invalidResponse',
      message: expect.stringContaining(message),
    });
    expect(asked).toHaveLength(1);
  });

  it('refuses vectors of another length than it asked for, or than those before', async () => {
    const { errorOf } = await serving(good, { dimensions: 3 });
    expect((await errorOf(['a'])).message).toContain('a vector of 2 dimensions instead of 3');
    const changing = await serving(({ texts }, response, nth) => {
      send(response, answer(texts.map(() => Array.from({ length: nth }, () => 1))));
    });
    await changing.embed(['a']);
    expect(await changing.errorOf(['a'])).toMatchObject({ code: 'invalidResponse' });
  });

  it('retries what a model would retry, and reports other errors immediately', async () => {
    const { asked, embed } = await serving((it, response, nth) => {
      if (nth < 3) send(response, { error: { message: 'busy' } }, nth === 1 ? 503 : 429);
      else good(it, response, nth);
    });
    expect(await embed(['a'])).toEqual([[1, 0.5]]);
    expect(asked).toHaveLength(3);
    const refusing = await serving((_, response) =>
      send(response, { error: { message: `The key ${key} is wrong.` } }, 401),
    );
    expect(await refusing.errorOf(['a'])).toMatchObject({ code: 'auth', status: 401 });
    expect(refusing.asked).toHaveLength(1);
  });

  it('C7: shows the key in no error', async () => {
    const bodies = [
      { error: { message: `The key ${key} is wrong.` } },
      { data: key },
      { data: [{ index: key, embedding: [1] }] },
      { data: [{ embedding: key }] },
    ];
    for (const [at, body] of bodies.entries()) {
      const { errorOf } = await serving((_, response) =>
        send(response, body, at === 0 ? 400 : 200),
      );
      const error = await errorOf(['a']);
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(key.slice(0, 12));
    }
  });

  it('errors with contextTooLong for text that is too long, after one request', async () => {
    const message =
      "This model's maximum context length is 8192 tokens, however you requested 9000.";
    const { asked, errorOf } = await serving((_, response) =>
      send(response, { error: { message, code: 'context_length_exceeded' } }, 400),
    );
    expect(await errorOf(['x'])).toMatchObject({ code: 'contextTooLong' });
    expect(asked).toHaveLength(1);
  });

  it('errors if a server streams, and in time if it is silent', async () => {
    const streaming = await serving((_, response) => {
      response.end('data: {"choices":[]}\n\n');
    });
    expect((await streaming.errorOf(['a'])).message).toContain('a stream');
    const silent = await serving(() => undefined, { retry: false, timeouts: { firstChunkMs: 50 } });
    expect(await silent.errorOf(['a'])).toMatchObject({ code: 'timeout' });
  });

  it('I5: aborts the request, and sends no further batch, if it is left', async () => {
    const closed = new Promise<void>((resolve, reject) => {
      serving((_, response) => response.on('close', resolve), { batchSize: 1 })
        .then(({ asked, embedder }) => {
          const subscription = embedder.embed$(['a', 'b']).subscribe();
          servers.at(-1)?.on('request', () => {
            subscription.unsubscribe();
            expect(asked.length).toBeLessThan(2);
          });
        })
        .catch(reject);
    });
    await closed;
  });

  it('refuses a missing name and unknown options', () => {
    expect(() => embeddings(profiles.openai, '', { apiKey: key })).toThrow(
      'text-embedding-3-small',
    );
    expect(() => embeddings(profiles.openai, 'm', { apiKey: key, batchSize: 0 })).toThrow(
      "'batchSize' must be",
    );
    const wrong: object = { apiKey: key, batch: 1 };
    expect(() => embeddings(profiles.openai, 'm', wrong)).toThrow("has no option 'batch'");
  });
});
