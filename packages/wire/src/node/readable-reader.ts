import type { Readable } from 'node:stream';
import type { BodyReader } from '../body-reader.js';

/**
 * Reads a stream of Node: with each read all that it holds. It holds no more than its high-water mark, so that what
 * nobody reads is left to the socket. `fail` makes what a read rejects with of what broke the stream.
 */
export const readableReader = (
  readable: Readable,
  fail: (error: unknown) => unknown,
): BodyReader => {
  const pieces: AsyncIterator<Uint8Array, unknown> = readable[Symbol.asyncIterator]();
  return {
    read: () =>
      pieces.next().catch((error: unknown) => {
        throw fail(error);
      }),
    cancel: () => {
      readable.destroy();
      return Promise.resolve();
    },
  };
};
