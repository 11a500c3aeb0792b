/** The end of a stream: it ended, it failed, or its reader cancelled it. */
export type StreamEnd = 'ended' | 'failed' | 'cancelled';

/**
 * Returns a stream with the chunks of another one, and calls `over` once, at its end, even if it is cancelled before the first
 * read. Reads a chunk only when its own reader asks for one.
 */
export const watchStream = <T>(
  stream: ReadableStream<T>,
  over: (how: StreamEnd) => void,
): ReadableStream<T> => {
  const reader = stream.getReader();
  let isOver = false;
  const end = (how: StreamEnd): void => {
    if (!isOver) over(how);
    isOver = true;
  };
  return new ReadableStream<T>(
    {
      pull: (controller) =>
        reader.read().then(
          ({ done, value }) => {
            if (!done) {
              controller.enqueue(value);
              return;
            }
            // A cancelled stream is closed already.
            if (!isOver) controller.close();
            end('ended');
          },
          (error: unknown) => {
            controller.error(error);
            end('failed');
          },
        ),
      cancel: (reason) => {
        end('cancelled');
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
};
