import { createServer, type RequestListener } from 'node:http';
import { MillraceError, type ModelChunk, type ModelContext } from 'millrace';
import { isRecord } from 'millrace/values';
import { lentContext } from 'millrace/testing';
import { lastValueFrom, toArray } from 'rxjs';
import { defaultCaps } from './caps.js';
import type { Exchange } from './exchange.js';
import { exchange$ } from './exchange-stream.js';

/** An event of the vendor that these tests speak with: its data is the chunk itself. */
export const event = (chunk: unknown): string => `data: ${JSON.stringify(chunk)}\n\n`;

export const textEvent = (text: string): string => event({ type: 'text', text });
export const finishEvent = event({ type: 'finish', finish: 'stop' });
export const usageEvent = event({ type: 'usage', usage: { outputTokens: 1 } });
export const doneEvent = 'data: [DONE]\n\n';

const isChunk = (data: unknown): data is ModelChunk =>
  typeof data === 'object' && data !== null && 'type' in data && data.type !== 'unheard';

/** Answers a request. */
export type Send = (signal: AbortSignal) => Promise<Response>;

/** A request to that vendor, over a `fetch` that answers with `send`. */
export const exchangeWith = (
  send: Send,
  { caps, ...rest }: Partial<Omit<Exchange, 'caps'>> & { caps?: Partial<Exchange['caps']> } = {},
): Exchange => ({
  vendor: 'Acme',
  secrets: [],
  request: () => ({ url: 'https://acme.example/v1', headers: {}, body: '{}' }),
  fetch: (_, init) => send(init?.signal ?? new AbortController().signal),
  read: ({ data }) => (isChunk(data) ? [data] : []),
  readWhole: (body) =>
    isRecord(body) && Array.isArray(body['chunks']) ? body['chunks'].filter(isChunk) : [],
  caps: { ...defaultCaps, ...caps },
  ...rest,
});

const bytesOf = (piece: string | Uint8Array): Uint8Array =>
  typeof piece === 'string' ? new TextEncoder().encode(piece) : piece;

/** A body that arrives in these pieces; a rejection breaks it off. */
export const bodyOf = (
  pieces: Iterable<string | Uint8Array | Error>,
  onCancel: () => void = () => undefined,
): ReadableStream<Uint8Array> => {
  const iterator = pieces[Symbol.iterator]();
  return new ReadableStream(
    {
      pull: (controller) => {
        const next = iterator.next();
        if (next.done === true) controller.close();
        else if (next.value instanceof Error) controller.error(next.value);
        else controller.enqueue(bytesOf(next.value));
      },
      cancel: onCancel,
    },
    { highWaterMark: 0 },
  );
};

/** A good response of these pieces. */
export const respond =
  (pieces: Iterable<string | Uint8Array | Error>, init: ResponseInit = {}) =>
  (): Promise<Response> =>
    Promise.resolve(new Response(bodyOf(pieces), init));

/** What came of an exchange. */
export interface Outcome {
  readonly chunks: readonly ModelChunk[];
  readonly error?: MillraceError;
}

/** Does an exchange, and tells its chunks and its error. */
export const outcomeOf = (
  exchange: Exchange,
  lent: Partial<ModelContext> = {},
): Promise<Outcome> => {
  const chunks: ModelChunk[] = [];
  return new Promise((resolve, reject) => {
    exchange$(exchange, lentContext(lent)).subscribe({
      next: (chunk) => chunks.push(chunk),
      complete: () => resolve({ chunks }),
      error: (error: unknown) => {
        if (error instanceof MillraceError) resolve({ chunks, error });
        else reject(new Error(`Not a MillraceError: ${String(error)}`));
      },
    });
  });
};

/** The chunks of an exchange that must succeed. */
export const chunksOf = (exchange: Exchange): Promise<readonly ModelChunk[]> =>
  lastValueFrom(exchange$(exchange, lentContext()).pipe(toArray()));

/** The error of an exchange that must fail. */
export const errorOf = async (exchange: Exchange): Promise<MillraceError> => {
  const { error } = await outcomeOf(exchange);
  if (error === undefined) throw new Error('There was no error.');
  return error;
};

/** A promise that resolves when `give` is called. */
export const signal = () => {
  let give: () => void = () => undefined;
  const given = new Promise<void>((resolve) => (give = resolve));
  return { give, given };
};

/** Serves on loopback while a test runs, and closes every socket behind it. */
export const serving = async <T>(
  listener: RequestListener,
  test: (origin: string) => Promise<T>,
): Promise<T> => {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  try {
    return await test(`http://127.0.0.1:${port ?? 0}`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
};
