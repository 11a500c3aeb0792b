import { describe, expect, it } from '@jest/globals';
import { type StreamEnd, watchStream } from './watch-stream.js';

const streamOf = (...chunks: string[]): ReadableStream<string> =>
  new ReadableStream<string>(
    {
      pull: (controller) => {
        const [next] = chunks.splice(0, 1);
        if (next === undefined) controller.close();
        else controller.enqueue(next);
      },
    },
    { highWaterMark: 0 },
  );

/** Watches a stream, and returns its ends so far. */
const watching = (source: ReadableStream<string>) => {
  const ends: StreamEnd[] = [];
  const stream = watchStream(source, (how) => ends.push(how));
  return { ends, reader: stream.getReader() };
};

describe('watchStream', () => {
  it('passes all chunks on, and reports the end once', async () => {
    const { ends, reader } = watching(streamOf('a', 'b'));
    expect(await reader.read()).toEqual({ done: false, value: 'a' });
    expect(await reader.read()).toEqual({ done: false, value: 'b' });
    expect(ends).toEqual([]);
    expect(await reader.read()).toEqual({ done: true, value: undefined });
    await reader.cancel();
    expect(ends).toEqual(['ended']);
  });

  it('passes an error on, and reports it as a failure', async () => {
    const { ends, reader } = watching(
      new ReadableStream({ pull: () => Promise.reject(new Error('Broken.')) }),
    );
    await expect(reader.read()).rejects.toThrow('Broken.');
    expect(ends).toEqual(['failed']);
  });

  it('cancels the source, and reports that even before the first read', async () => {
    const cancelled: unknown[] = [];
    const { ends, reader } = watching(
      new ReadableStream({ cancel: (reason) => void cancelled.push(reason) }),
    );
    await reader.cancel('The client left.');
    expect([ends, cancelled]).toEqual([['cancelled'], ['The client left.']]);
  });

  it('reports one end if it is cancelled while a read waits', async () => {
    const { ends, reader } = watching(new ReadableStream());
    const waiting = reader.read();
    // The read reaches the source a few microtasks later.
    await new Promise((resolve) => setImmediate(resolve));
    await reader.cancel();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(ends).toEqual(['cancelled']);
  });

  it('reads no chunk that its reader has not asked for', async () => {
    let pulls = 0;
    const source = new ReadableStream<string>(
      {
        pull: (controller) => {
          pulls += 1;
          controller.enqueue('a');
        },
      },
      { highWaterMark: 0 },
    );
    const { reader } = watching(source);
    await Promise.resolve();
    expect(pulls).toBe(0);
    await reader.read();
    expect(pulls).toBe(1);
  });
});
