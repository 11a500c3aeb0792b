import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { once } from 'node:events';
import type { Agent } from 'millrace';
import { serve, type Served, type ServeOptions } from '@millrace/server/node';
import { firstValueFrom, ReplaySubject, type Subscription } from 'rxjs';

/** An agent that is served until `close`. */
export interface Serving extends Served {
  readonly errors: readonly string[];
  readonly close: () => void;
}

/** Serves an agent on loopback, on a port of the system's choice. */
export const serving = async (agent: Agent, options: ServeOptions = {}): Promise<Serving> => {
  const errors: string[] = [];
  const served$ = new ReplaySubject<Served>(1);
  const subscription: Subscription = serve(agent, {
    port: 0,
    signals: [],
    onError: ({ code, message }) => errors.push(`${code} ${message}`),
    ...options,
  }).subscribe(served$);
  const served = await firstValueFrom(served$);
  return { ...served, errors, close: () => subscription.unsubscribe() };
};

/** The user of a request is what its header `authorization` says: the attacks are about what comes after that. */
export const userOf = (request: Request): string | undefined =>
  request.headers.get('authorization') ?? undefined;

export interface Site {
  readonly origin: string;
  readonly port: number;
  readonly close: () => Promise<void>;
}

/** A server of the attacker's, or one that an attacker must not reach. */
export const openSite = async (listener: RequestListener): Promise<Site> => {
  const server: Server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

export const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let body = '';
  for await (const piece of request.setEncoding('utf8')) body += String(piece);
  return body;
};
