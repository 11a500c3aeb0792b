/** The end of a stream: it ended, it failed, or its reader cancelled it. */
export type StreamEnd = 'ended' | 'failed' | 'cancelled';

/** Calls `over` for the first end only: a stream that is cancelled during a read also ends that read. */
export const onceOver = (over?: (how: StreamEnd) => void): ((how: StreamEnd) => void) => {
  let isOver = false;
  return (how) => {
    if (isOver) return;
    isOver = true;
    over?.(how);
  };
};

/**
 * Returns a stream with the chunks of another one, and calls `over` once, at its end, even if it is cancelled before the first
 * read. Reads a chunk only when its own reader asks for one.
 */
export const watchStream = <T>(
  stream: ReadableStream<T>,
  over: (how: StreamEnd) => void,
): ReadableStream<T> => {
  const reader = stream.getReader();
  const end = onceOver(over);
  return new ReadableStream<T>(
    {
      pull: (controller) =>
        reader.read().then(
          ({ done, value }) => {
            if (!done) {
              controller.enqueue(value);
              return;
            }
            end('ended');
            controller.close();
          },
          (error: unknown) => {
            controller.error(error);
            end('failed');
          },
        ),
      cancel: (reason) => {
        // First: the callback may throw.
        const left = reader.cancel(reason);
        end('cancelled');
        return left;
      },
    },
    { highWaterMark: 0 },
  );
};
