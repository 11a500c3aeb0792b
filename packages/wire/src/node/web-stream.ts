import type { BodyReader } from '../body-reader.js';

/** Makes the stream of a response's body. It reads nothing ahead. */
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
          // A copy: a stream takes the memory of what it is given, and others of Node share that.
          controller.enqueue(new Uint8Array(value));
        }
      },
      cancel: async () => {
        await reader.cancel();
      },
    },
    { highWaterMark: 0 },
  );
