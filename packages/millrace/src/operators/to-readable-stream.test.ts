import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { concat, from, NEVER, Observable, of, range, Subject, tap, throwError } from 'rxjs';
import type { Demand } from '../flow/demand.js';
import { fromPull } from '../flow/from-pull.js';
import { createAgent, type Model, type ModelChunk, only } from '../index.js';
import { toReadableStream } from './readable-stream.js';

/** Lets all promises settle that wait for nothing but each other. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

const readAll = async <T>(stream: ReadableStream<T>): Promise<readonly T[]> => {
  const values: T[] = [];
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return values;
    values.push(value);
  }
};

async function* counting(pulled: number[]) {
  for (let n = 0; ; n += 1) {
    pulled.push(n);
    yield await Promise.resolve(n);
  }
}

async function* stepping<T>(values: readonly T[]) {
  for (const value of values) yield await Promise.resolve(value);
}

describe('toReadableStream', () => {
  it('subscribes at the first read, and hands over all values in their order', async () => {
    const subscribed = jest.fn();
    const stream = toReadableStream(() => range(0, 200).pipe(tap({ subscribe: subscribed })));
    await settle();
    expect(subscribed).not.toHaveBeenCalled();
    expect(await readAll(stream)).toEqual(Array.from({ length: 200 }, (_, n) => n));
    expect(subscribed).toHaveBeenCalledTimes(1);
  });

  it('I16: pauses the source at the high-water mark, and lets it continue at half of it', async () => {
    const pulled: number[] = [];
    let level: Demand | undefined;
    const stream = toReadableStream(
      (demand) => {
        level = demand;
        return fromPull(() => counting(pulled), demand);
      },
      { highWaterMark: 8 },
    );
    const reader = stream.getReader();
    expect(await reader.read()).toEqual({ done: false, value: 0 });
    await settle();
    expect(level?.isOpen).toBe(false);
    expect(pulled).toHaveLength(9);
    for (let n = 1; n <= 3; n += 1) await reader.read();
    await settle();
    expect(pulled).toHaveLength(9);
    await reader.read();
    await settle();
    expect(pulled).toHaveLength(13);
    await reader.cancel();
    await settle();
    expect(pulled).toHaveLength(13);
  });

  it('I16: a slow reader of an agent pauses its model', async () => {
    let asked = 0;
    const model: Model = {
      name: 'endless',
      stream$: (_request, { demand }) =>
        fromPull(async function* (): AsyncGenerator<ModelChunk> {
          for (;;) {
            asked += 1;
            yield await Promise.resolve({ type: 'text', text: 't' });
          }
        }, demand),
    };
    const reader = toReadableStream((demand) =>
      createAgent({ model }).stream$('?', { demand }).pipe(only('reasoningChunk')),
    ).getReader();
    expect((await reader.read()).value).toMatchObject({ delta: 't' });
    await settle();
    expect(asked).toBeLessThan(70);
    await reader.cancel();
    await settle();
    expect(asked).toBeLessThan(70);
  });

  it('I5: cancelling unsubscribes immediately, also while a read waits, and opens the demand', async () => {
    let left = 0;
    let level: Demand | undefined;
    const source$ = concat(range(0, 100), NEVER).pipe(tap({ unsubscribe: () => (left += 1) }));
    const stream = toReadableStream((demand) => {
      level = demand;
      return source$;
    });
    const reader = stream.getReader();
    await reader.read();
    expect(level?.isOpen).toBe(false);
    const cancelled = reader.cancel();
    expect(left).toBe(1);
    expect(level?.isOpen).toBe(true);
    await cancelled;
    expect(await reader.read()).toEqual({ done: true, value: undefined });

    const waiting = toReadableStream(() => NEVER.pipe(tap({ unsubscribe: () => (left += 1) })));
    const waitingReader = waiting.getReader();
    const read = waitingReader.read();
    await settle();
    await waitingReader.cancel();
    expect(left).toBe(2);
    expect(await read).toEqual({ done: true, value: undefined });
  });

  it('never subscribes when it is cancelled before the first read', async () => {
    const open = jest.fn(() => of(1));
    const stream = toReadableStream(open);
    await stream.cancel();
    expect(open).not.toHaveBeenCalled();
    await expect(readAll(stream)).resolves.toEqual([]);
  });

  it('errors with the error of the source, after what waits', async () => {
    const broken = new Error('broken');
    const stream = toReadableStream(() =>
      concat(
        of(1, 2),
        throwError(() => broken),
      ),
    );
    const reader = stream.getReader();
    expect([(await reader.read()).value, (await reader.read()).value]).toEqual([1, 2]);
    await expect(reader.read()).rejects.toBe(broken);
    const waiting$ = new Subject<number>();
    const read = toReadableStream(() => waiting$)
      .getReader()
      .read();
    waiting$.error(broken);
    await expect(read).rejects.toBe(broken);
    const throwing = toReadableStream((): Observable<number> => {
      throw broken;
    });
    await expect(readAll(throwing)).rejects.toBe(broken);
  });

  it('reports a teardown that throws to the canceller, and opens the demand all the same', async () => {
    let level: Demand | undefined;
    const stream = toReadableStream((demand) => {
      level = demand;
      return new Observable<number>((subscriber) => {
        for (let n = 0; n < 100; n += 1) subscriber.next(n);
        return () => {
          throw new Error('stuck');
        };
      });
    });
    const reader = stream.getReader();
    await reader.read();
    await expect(reader.cancel()).rejects.toThrow('stuck');
    expect(level?.isOpen).toBe(true);
  });

  it('is the body of a Response, and goes through other streams', async () => {
    const words = ['Grüße, ', 'Zürich', ' 🏔'];
    const body = toReadableStream(() => from(words)).pipeThrough(new TextEncoderStream());
    expect(await new Response(body).text()).toBe(words.join(''));
  });

  it('shows every reader what was emitted, for any mark', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat()), fc.integer({ min: 1, max: 9 }), async (values, mark) => {
        const stream = toReadableStream((demand) => fromPull(() => stepping(values), demand), {
          highWaterMark: mark,
        });
        expect(await readAll(stream)).toEqual(values);
      }),
      { numRuns: 30 },
    );
  });

  it('reports its end once: after the last value, after an error, and if it is cancelled, also before or during a read', async () => {
    const ends: string[] = [];
    const stream = (source$: Observable<number>) =>
      toReadableStream(() => source$, { onEnd: (how) => ends.push(how) });
    await readAll(stream(of(1, 2)));
    await expect(readAll(stream(throwError(() => new Error('broken'))))).rejects.toThrow('broken');
    await stream(of(1)).cancel();
    const reader = stream(NEVER).getReader();
    const waiting = reader.read();
    await settle();
    expect(ends).toEqual(['ended', 'failed', 'cancelled']);
    await reader.cancel();
    expect(await waiting).toEqual({ done: true, value: undefined });
    await settle();
    expect(ends).toEqual(['ended', 'failed', 'cancelled', 'cancelled']);
  });

  it('leaves the source even if the program fails at the end, which it hears of once', async () => {
    const source$ = new Subject<number>();
    let ends = 0;
    const fail = (): never => {
      ends += 1;
      throw new Error('broken');
    };
    const reader = toReadableStream(() => source$, { onEnd: fail }).getReader();
    reader.read().catch(() => undefined);
    await settle();
    expect(source$.observed).toBe(true);
    await expect(reader.cancel()).rejects.toThrow('broken');
    expect(source$.observed).toBe(false);
    await settle();
    expect(ends).toBe(1);
  });

  it('refuses an invalid mark', () => {
    expect(() => toReadableStream(() => of(1), { highWaterMark: 0 })).toThrow(
      "toReadableStream(): 'highWaterMark' must be a number of at least 1, not 0.",
    );
    expect(() => toReadableStream(() => of(1), { mark: 1 } as never)).toThrow(
      "has no option 'mark'",
    );
  });
});
