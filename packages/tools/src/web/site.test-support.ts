import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Site {
  readonly port: number;
  readonly origin: string;
  /** The paths that were requested, in order. */
  readonly requests: readonly string[];
  /** Resolves once a request of this path has been made, and its connection is closed. */
  closed(path: string): Promise<void>;
  close(): Promise<void>;
}

/** Serves pages on a free port of 127.0.0.1. */
export const openSite = async (pages: Readonly<Record<string, RequestListener>>): Promise<Site> => {
  const requests: string[] = [];
  const closings = new Map<string, PromiseWithResolve>();
  const closingOf = (path: string): PromiseWithResolve => {
    const closing = closings.get(path) ?? withResolve();
    closings.set(path, closing);
    return closing;
  };
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    requests.push(path);
    request.socket.once('close', () => closingOf(path).resolve());
    (pages[path] ?? (() => response.writeHead(404).end()))(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    requests,
    closed: (path) => closingOf(path).promise,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
};

interface PromiseWithResolve<T = void> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

/** `Promise.withResolvers` of Node 22. */
export const withResolve = <T = void>(): PromiseWithResolve<T> => {
  let settle: (value: T) => void = () => undefined;
  const promise = new Promise<T>((resolve) => (settle = resolve));
  return { promise, resolve: (value) => settle(value) };
};
