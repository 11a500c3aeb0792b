/** The end of a stream: it ended, it failed, or its reader cancelled it. */
export type StreamEnd = 'ended' | 'failed' | 'cancelled';

/** The reads of a stream: the next value, and the end of all reads. */
interface Reads<T> {
  readonly next: () => Promise<
    { readonly done?: false; readonly value: T } | { readonly done: true; readonly value?: unknown }
  >;
  readonly leave: (reason: unknown) => Promise<void>;
}

/**
 * Returns a stream of what `next` reads, one value for each read of its own reader. Calls `over` once, for the first end: a stream that is
 * cancelled during a read also ends that read.
 */
export const streamOf = <T>(
  { next, leave }: Reads<T>,
  over?: (how: StreamEnd) => void,
): ReadableStream<T> => {
  let isOver = false;
  const end = (how: StreamEnd): void => {
    if (isOver) return;
    isOver = true;
    over?.(how);
  };
  return new ReadableStream<T>(
    {
      pull: (controller) =>
        next().then(
          (result) => {
            if (result.done !== true) {
              controller.enqueue(result.value);
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
        const left = leave(reason);
        end('cancelled');
        return left;
      },
    },
    // No internal queue: demand would not see its values.
    { highWaterMark: 0 },
  );
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
  return streamOf<T>({ next: () => reader.read(), leave: (reason) => reader.cancel(reason) }, over);
};
