import { describe, expect, it, jest } from '@jest/globals';
import { firstValueFrom, lastValueFrom, take, toArray } from 'rxjs';
import { createDemand } from '../flow/demand.js';
import { fromReadableStream } from './readable-stream.js';

/** Lets all promises settle that wait for nothing but each other. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A stream that counts what it is asked for, and hears when it is cancelled. */
const counting = (length: number) => {
  const cancelled = jest.fn(() => undefined);
  let asked = 0;
  const stream = new ReadableStream<number>(
    {
      pull: (controller) => {
        if (asked === length) controller.close();
        else controller.enqueue(asked++);
      },
      cancel: cancelled,
    },
    { highWaterMark: 0 },
  );
  return { stream, cancelled, asked: () => asked };
};

describe('fromReadableStream', () => {
  it('emits the chunks of a stream, completes with it, and releases it', async () => {
    const { stream } = counting(3);
    expect(await lastValueFrom(fromReadableStream(stream).pipe(toArray()))).toEqual([0, 1, 2]);
    expect(stream.locked).toBe(false);
  });

  it('reads the body of a Response', async () => {
    const { body } = new Response('Hello');
    const chunk$ = fromReadableStream(body as ReadableStream<Uint8Array>);
    const [bytes] = await lastValueFrom(chunk$.pipe(toArray()));
    expect(new TextDecoder().decode(bytes)).toBe('Hello');
  });

  it('I16: reads nothing while demand is closed', async () => {
    const { stream, asked } = counting(9);
    const gate = createDemand(4);
    fromReadableStream(stream, gate).subscribe((n) => {
      if (n === 2) gate.backlog(4);
    });
    await settle();
    expect(asked()).toBe(3);
    gate.backlog(0);
    await settle();
    expect(asked()).toBe(9);
  });

  it('I5: unsubscribing cancels the stream immediately, also while a read waits', async () => {
    const { stream, cancelled, asked } = counting(9);
    expect(await lastValueFrom(fromReadableStream(stream).pipe(take(2), toArray()))).toEqual([
      0, 1,
    ]);
    expect(cancelled).toHaveBeenCalledTimes(1);
    expect(asked()).toBe(2);
    expect(stream.locked).toBe(false);

    const stuck = jest.fn(() => undefined);
    const never = new ReadableStream<number>({ cancel: stuck });
    const subscription = fromReadableStream(never).subscribe();
    await settle();
    subscription.unsubscribe();
    expect(stuck).toHaveBeenCalledTimes(1);
    expect(never.locked).toBe(false);
  });

  it('says nothing of a stream that cannot even be cancelled', async () => {
    const stream = new ReadableStream<number>({
      cancel: () => {
        throw new Error('stuck');
      },
    });
    fromReadableStream(stream).subscribe().unsubscribe();
    await settle();
  });

  it('errors as the stream does', async () => {
    const broken = new Error('broken');
    const stream = new ReadableStream<number>({
      start: (controller) => {
        controller.error(broken);
      },
    });
    await expect(lastValueFrom(fromReadableStream(stream))).rejects.toBe(broken);
    expect(stream.locked).toBe(false);
  });

  it('opens a stream for each subscription if it gets a function', async () => {
    const open = jest.fn(() => counting(2).stream);
    const chunk$ = fromReadableStream(open);
    expect(open).not.toHaveBeenCalled();
    expect(await lastValueFrom(chunk$.pipe(toArray()))).toEqual([0, 1]);
    expect(await firstValueFrom(chunk$)).toBe(0);
    expect(open).toHaveBeenCalledTimes(2);
  });

  it('errors at a stream that was read, or that another reader has', async () => {
    const { stream } = counting(2);
    const chunk$ = fromReadableStream(stream);
    await lastValueFrom(chunk$);
    const again = { code: 'config', message: expect.stringContaining('has been read already') };
    await expect(lastValueFrom(chunk$)).rejects.toMatchObject(again);
    await expect(lastValueFrom(fromReadableStream(stream))).rejects.toMatchObject(again);
    const { stream: locked } = counting(2);
    locked.getReader();
    await expect(lastValueFrom(fromReadableStream(locked))).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining('locked by another reader'),
    });
  });

  it('refuses what is no stream', async () => {
    expect(() => fromReadableStream([1] as never)).toThrow('needs a ReadableStream');
    await expect(lastValueFrom(fromReadableStream(() => null as never))).rejects.toThrow(
      'needs a ReadableStream',
    );
  });
});
