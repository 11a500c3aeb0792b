import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { now } from '../one-clock.js';
import { framesOf, wholeOf } from './part.js';
import { readRequest } from './read-request.js';
import { Refusal } from './refusal.js';
import type { Seen, StreamMark } from './seen.js';
import { selfSigned } from '@millrace/fault-server';
import { sendFrames, sendPaced, sendWhole } from './send-frames.js';
import { watchStream } from './watch-stream.js';

/** A model that plays scripts over HTTP. */
export interface Mock {
  /** Up to and including `/v1`. */
  readonly baseURL: string;
  /** What a client over TLS has to trust, in PEM. Undefined without TLS. */
  readonly certificate: string | undefined;
  /** What it has seen so far. */
  seen(): Promise<Seen>;
  /** Ends it, and every connection with it. */
  close(): Promise<void>;
}

/** How a mock is started. */
export interface MockOptions {
  /** How far each stream has come is marked until its socket closes, which costs some time. Default: false. */
  readonly isWatching?: boolean;
  /** Whether it serves https, with a certificate made for this mock. Default: false. */
  readonly isTls?: boolean;
}

/**
 * Starts a model in this process. It keeps nothing between requests: the name of the model says what it plays, and the
 * conversation how far it has come. What a provider would not take is refused with the reason.
 */
export const startMock = async ({
  isWatching = false,
  isTls = false,
}: MockOptions = {}): Promise<Mock> => {
  const refused: string[] = [];
  const cutAt: number[] = [];
  const watched: (readonly StreamMark[])[] = [];
  const seen = (): Seen => ({ refused, cutAt, watched });

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const part = await readRequest(request);
      if (!part.isStreamed) {
        sendJson(response, 200, wholeOf(part));
        return;
      }
      const frames = framesOf(part);
      if (isWatching) watched.push(watchStream(request.socket));
      response.once('close', () => {
        if (!response.writableFinished) cutAt.push(now());
      });
      if (part.gapMs > 0) sendPaced(response, frames, part.gapMs);
      else if (part.isWhole) sendWhole(response, frames);
      else sendFrames(response, frames);
    } catch (thrown) {
      const isRefusal = thrown instanceof Refusal;
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      refused.push(message);
      const type = 'invalid_request_error';
      sendJson(response, isRefusal ? thrown.status : 500, {
        type: 'error',
        error: { type, message },
      });
    }
  };

  const listener = (request: IncomingMessage, response: ServerResponse): void =>
    void answer(request, response);
  const identity = isTls ? selfSigned() : undefined;
  const server = identity ? createTlsServer(identity, listener) : createServer(listener);
  // A client that is slow, or busy with other connections, must not lose one.
  server.keepAliveTimeout = 120_000;
  server.requestTimeout = 0;
  await new Promise<void>((resolve) =>
    server.listen({ port: 0, host: '127.0.0.1', backlog: 8_192 }, resolve),
  );
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  return {
    baseURL: `http${isTls ? 's' : ''}://127.0.0.1:${port}/v1`,
    certificate: identity?.cert,
    seen: () => Promise.resolve(seen()),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

const sendJson = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};
