import type { Readable } from 'node:stream';
import type { BodyReader } from '../body-reader.js';

/**
 * Reads a Node stream; each read returns its buffered data. The high-water mark limits the buffer, so an unread body
 * applies backpressure to the socket. `fail` maps the error of the stream to the rejection of a read.
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
