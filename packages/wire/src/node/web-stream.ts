import type { BodyReader } from '../body-reader.js';

/** Converts a reader to a web stream that does not read ahead. */
export const webStream = (reader: BodyReader): ReadableStream<Uint8Array> =>
  new ReadableStream(
    {
      type: 'bytes',
      pull: async (controller) => {
        const { done, value } = await reader.read();
        if (done === true) {
          controller.close();
          controller.byobRequest?.respond(0);
        } else {
          // A copy: a byte stream transfers the buffer of its chunks, and Node shares that with other streams.
          controller.enqueue(new Uint8Array(value));
        }
      },
      cancel: async () => {
        await reader.cancel();
      },
    },
    { highWaterMark: 0 },
  );
