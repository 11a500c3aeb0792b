import {
  createServer,
  type IncomingHttpHeaders,
  type Server,
  type ServerResponse,
} from 'node:http';
import { parsedJson } from 'millrace/values';

/** A request that the server received. */
export interface Asked {
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  /** The body, if it is JSON. */
  readonly body: unknown;
  /** Its number, from 1. */
  readonly nth: number;
}

const servers: Server[] = [];

export const closeServers = (): void => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
};

/** Starts a server on a free port of the loopback. */
export const serving = async (
  respond: (asked: Asked, response: ServerResponse) => void,
): Promise<{ readonly baseURL: string; readonly asked: readonly Asked[] }> => {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const bytes = Buffer.concat(chunks);
      const { url: path, headers } = request;
      const it = {
        path,
        headers,
        bytes,
        body: parsedJson(bytes.toString()),
        nth: asked.length + 1,
      };
      asked.push(it);
      respond(it, response);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  return { baseURL: `http://127.0.0.1:${port}/v1`, asked };
};

/** Sends events in pieces of this many bytes. */
export const splitEvents = (
  response: ServerResponse,
  events: readonly unknown[],
  size: number,
): void => {
  const text = [...events.map((it) => JSON.stringify(it)), '[DONE]']
    .map((it) => `data: ${it}\n\n`)
    .join('');
  const bytes = Buffer.from(text);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let at = 0; at < bytes.length; at += size) response.write(bytes.subarray(at, at + size));
  response.end();
};
