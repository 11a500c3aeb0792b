import { connect, createServer, type Socket } from 'node:net';

/** What the proxy does with the next statement that contains a text. */
export type Cut = 'statement' | 'answer';

export interface FaultProxy {
  readonly url: string;
  /** Cuts connections: in the middle of each of the next statements that contain a text, or after them, instead of the answer. */
  cutNext(cut: Cut, text: string, times?: number): void;
  /** Cuts every connection, and refuses new ones for a time. */
  refuse(forMs: number): void;
  /** Delays all answers by a time. */
  slow(byMs: number): void;
  /** The number of connections that were cut in the middle of something. */
  readonly cuts: () => number;
  close(): Promise<void>;
}

/** A TCP proxy to a server, which fails on demand. */
export const startFaultProxy = async (target: string): Promise<FaultProxy> => {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const state = { refusing: false, slowMs: 0, cuts: 0, cut: 'answer' as Cut, text: '', times: 0 };
  const server = createServer((client) => {
    if (state.refusing) {
      client.destroy();
      return;
    }
    const upstream = connect(Number(port), hostname);
    const both = [client, upstream];
    let isMuted = false;
    const end = (): void => both.forEach((socket) => socket.destroy());
    for (const socket of both) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', end).on('close', () => {
        sockets.delete(socket);
        end();
      });
    }
    client.on('data', (data) => {
      if (state.times === 0 || !data.includes(state.text)) {
        upstream.write(data);
        return;
      }
      state.times -= 1;
      state.cuts += 1;
      if (state.cut === 'statement') {
        upstream.write(data.subarray(0, data.length / 2), end);
        return;
      }
      isMuted = true;
      upstream.write(data);
    });
    upstream.on('data', (data) => {
      // It has done what the statement says.
      if (isMuted) end();
      else if (state.slowMs === 0) client.write(data);
      else setTimeout(() => client.write(data), state.slowMs);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const url = new URL(target);
  url.port = String(typeof address === 'object' && address !== null ? address.port : 0);
  const cutAll = (): void => sockets.forEach((socket) => socket.destroy());
  return {
    url: url.href,
    cutNext: (cut, text, times = 1) => Object.assign(state, { cut, text, times }),
    refuse: (forMs) => {
      state.refusing = true;
      cutAll();
      setTimeout(() => (state.refusing = false), forMs);
    },
    slow: (byMs) => {
      state.slowMs = byMs;
    },
    cuts: () => state.cuts,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cutAll();
      }),
  };
};
