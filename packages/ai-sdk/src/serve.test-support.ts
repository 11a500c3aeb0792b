import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Answer, Frame, Wire } from './wires.test-support.js';

/** One response of a server: a status with a body, or frames. */
export interface Response {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly frames: readonly Frame[];
  /** Ends with a lost connection. */
  readonly breaks?: boolean;
  /** Keeps the response open. */
  readonly holds?: boolean;
}

export interface VendorServer {
  readonly url: string;
  /** The JSON bodies of all requests, as strings. */
  readonly bodies: readonly string[];
  /** The `authorization` headers of all requests that have one. */
  readonly authorizations: readonly string[];
  /** The number of bytes that the socket accepted, and of connections that the client closed early. */
  readonly counts: { written: number; left: number };
  readonly close: () => Promise<void>;
}

/** Plays responses on a free port of the loopback, one for each request; the last one repeats. */
export const serve = async (...list: readonly Response[]): Promise<VendorServer> => {
  const bodies: string[] = [];
  const authorizations: string[] = [];
  const counts = { written: 0, left: 0 };
  const server = createServer((request, response) => {
    let body = '';
    const { authorization } = request.headers;
    if (authorization !== undefined) authorizations.push(authorization);
    request.setEncoding('utf8').on('data', (piece: string) => (body += piece));
    request.on('end', () => {
      const next = list[Math.min(bodies.push(body), list.length) - 1];
      if (next !== undefined) play(next, response, counts);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    bodies,
    authorizations,
    counts,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

const play = (
  { status = 200, headers = {}, frames, breaks, holds }: Response,
  response: ServerResponse,
  counts: { written: number; left: number },
): void => {
  response.writeHead(status, headers);
  response.on('close', () => (counts.left += response.writableEnded ? 0 : 1));
  const write = (index: number): void => {
    const frame = frames[index];
    if (frame === undefined) {
      if (breaks === true) response.destroy();
      else if (holds !== true) response.end();
      return;
    }
    const next = (): void => write(index + 1);
    counts.written += frame.length;
    if (response.write(frame)) setImmediate(next);
    else response.once('drain', next);
  };
  write(0);
};

/** A whole answer in a wire format. */
export const answering = ({ contentType, frames }: Wire, answer: Answer): Response => {
  const { content, end } = frames(answer);
  return { headers: { 'content-type': contentType }, frames: [...content, ...end] };
};

/** An answer without its end: the response ends, or the connection is lost. */
export const cutting = (wire: Wire, answer: Answer, breaks = false): Response => ({
  headers: { 'content-type': wire.contentType },
  frames: wire.frames(answer).content,
  breaks,
});

/** An answer that ends with an error. */
export const failing = (wire: Wire, answer: Answer): Response => ({
  headers: { 'content-type': wire.contentType },
  frames: [...wire.frames(answer).content, wire.fault],
});
