import { describe, expect, it, jest } from '@jest/globals';
import { count, firstValueFrom, lastValueFrom, take, tap, toArray } from 'rxjs';
import { createDemand, openDemand } from './demand.js';
import { fromBatches, fromPull } from './from-pull.js';

async function* counting(upTo: number, pulled: number[]) {
  for (let n = 1; n <= upTo; n += 1) {
    pulled.push(n);
    yield await Promise.resolve(n);
  }
}

/** Lets all promises settle that wait for nothing but each other. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('fromPull', () => {
  it('emits what is pulled, and completes', async () => {
    const value$ = fromPull(() => counting(3, []), openDemand);
    expect(await lastValueFrom(value$.pipe(toArray()))).toEqual([1, 2, 3]);
  });

  it('is cold: each subscription opens a source of its own', async () => {
    const open = jest.fn(() => counting(1, []));
    const value$ = fromPull(open, openDemand);
    expect(open).not.toHaveBeenCalled();
    await lastValueFrom(value$);
    await lastValueFrom(value$);
    expect(open).toHaveBeenCalledTimes(2);
  });

  it('I16: takes nothing while demand is closed, and goes on when it opens', async () => {
    const pulled: number[] = [];
    const gate = createDemand(4);
    const seen: number[] = [];
    const subscription = fromPull(() => counting(100, pulled), gate).subscribe((n) => {
      seen.push(n);
      if (n === 5) gate.backlog(4);
    });
    await settle();
    expect(pulled).toHaveLength(5);
    gate.backlog(2);
    await settle();
    expect(seen).toHaveLength(100);
    subscription.unsubscribe();
  });

  it('I5: on unsubscribe the signal aborts in the same tick, and the iterator is told to return', async () => {
    let signal: AbortSignal | undefined;
    const returned = jest.fn();
    const stalled = {
      next: () => new Promise<never>(() => undefined),
      return: () => {
        returned();
        return Promise.reject(new Error('not heard'));
      },
    };
    const subscription = fromPull((given) => {
      signal = given;
      return { [Symbol.asyncIterator]: () => stalled };
    }, openDemand).subscribe();
    subscription.unsubscribe();
    expect(signal?.aborted).toBe(true);
    await settle();
    expect(returned).toHaveBeenCalledTimes(1);
  });

  it('aborts nothing when it has come to the end', async () => {
    let aborted: boolean | undefined;
    const value$ = fromPull((signal) => {
      signal.addEventListener('abort', () => (aborted = true));
      return counting(2, []);
    }, openDemand);
    await lastValueFrom(value$);
    expect(aborted).toBeUndefined();
  });

  it('stops pulling for somebody who has enough', async () => {
    const pulled: number[] = [];
    await lastValueFrom(fromPull(() => counting(100, pulled), openDemand).pipe(take(2)));
    await settle();
    expect(pulled.length).toBeLessThanOrEqual(3);
  });

  it('passes an error of the source on', async () => {
    const failing = fromPull(async function* () {
      yield await Promise.resolve(1);
      throw new Error('broken pipe');
    }, openDemand);
    await expect(lastValueFrom(failing)).rejects.toThrow('broken pipe');
  });
});

describe('fromBatches', () => {
  /** Batches of ten numbers, and what has been made of them so far. */
  async function* tens(batches: number, made: number[]) {
    for (let batch = 0; batch < batches; batch += 1) {
      yield await Promise.resolve(
        (function* () {
          for (let n = 0; n < 10; n += 1) {
            made.push(batch * 10 + n);
            yield batch * 10 + n;
          }
        })(),
      );
    }
  }

  it('emits the values of each batch one by one, and completes', async () => {
    const value$ = fromBatches(() => tens(3, []), openDemand);
    expect(await lastValueFrom(value$.pipe(toArray()))).toEqual([...Array(30).keys()]);
  });

  it('passes over a batch that is empty', async () => {
    const value$ = fromBatches(async function* () {
      yield await Promise.resolve([]);
      yield await Promise.resolve([1]);
      yield await Promise.resolve([]);
    }, openDemand);
    expect(await lastValueFrom(value$.pipe(toArray()))).toEqual([1]);
  });

  it('I16: makes nothing more of a batch while demand is closed', async () => {
    const made: number[] = [];
    const gate = createDemand(4);
    const seen: number[] = [];
    fromBatches(() => tens(2, made), gate).subscribe((n) => {
      seen.push(n);
      if (n === 3 || n === 9) gate.backlog(4);
    });
    await settle();
    expect([seen.length, made.length]).toEqual([4, 4]);
    gate.backlog(0);
    await settle();
    // The next batch is not pulled before it is wanted.
    expect([seen.length, made.length]).toEqual([10, 10]);
    gate.backlog(0);
    await settle();
    expect(seen).toEqual([...Array(20).keys()]);
  });

  it('emits a value once where demand closes and opens again within it', async () => {
    const gate = createDemand(4);
    const seen: number[] = [];
    fromBatches(() => tens(2, []), gate).subscribe((n) => {
      seen.push(n);
      gate.backlog(4);
      gate.backlog(0);
    });
    await settle();
    expect(seen).toEqual([...Array(20).keys()]);
  });

  it('I5: leaves the rest of a batch to nobody', async () => {
    const made: number[] = [];
    await lastValueFrom(fromBatches(() => tens(2, made), openDemand).pipe(take(3)));
    await settle();
    expect(made).toHaveLength(3);
  });

  it('passes on what a batch throws, behind what came before it, and aborts the source', async () => {
    let signal: AbortSignal | undefined;
    const seen: number[] = [];
    const value$ = fromBatches(async function* (given) {
      signal = given;
      yield await Promise.resolve(
        (function* () {
          yield 1;
          throw new Error('unreadable');
        })(),
      );
    }, openDemand);
    await expect(lastValueFrom(value$.pipe(tap((n) => seen.push(n))))).rejects.toThrow(
      'unreadable',
    );
    expect(seen).toEqual([1]);
    expect(signal?.aborted).toBe(true);
  });

  it('takes time in proportion to what comes', async () => {
    const value$ = fromBatches(async function* () {
      for (let batch = 0; batch < 1_000; batch += 1) {
        yield await Promise.resolve(Array<number>(1_000).fill(1));
      }
    }, openDemand);
    expect(await lastValueFrom(value$.pipe(count()))).toBe(1_000_000);
  });
});

describe('demand', () => {
  it('closes at the high-water mark and opens at half of it', () => {
    const gate = createDemand(8);
    const levels: boolean[] = [];
    const watching = gate.open$.subscribe((level) => levels.push(level));
    for (const waiting of [1, 7, 8, 9, 5, 4, 8]) gate.backlog(waiting);
    expect(gate.isOpen).toBe(false);
    gate.release();
    expect(levels).toEqual([true, false, true, false, true]);
    watching.unsubscribe();
    expect(gate.isOpen).toBe(true);
  });

  it('tells a change within a change as it is in the end', () => {
    const gate = createDemand(8);
    const levels: boolean[] = [];
    let first = true;
    gate.open$.subscribe((open) => {
      if (open && !first) gate.backlog(8);
      first = false;
    });
    gate.open$.subscribe((open) => levels.push(open));
    gate.backlog(8);
    gate.backlog(0);
    expect(levels.at(-1)).toBe(gate.isOpen);
  });

  it('shows the present level to whoever comes late, also after its consumer has gone', async () => {
    const gate = createDemand(1);
    gate.backlog(1);
    expect(await firstValueFrom(gate.open$)).toBe(false);
    gate.release();
    gate.backlog(5);
    expect(await firstValueFrom(gate.open$)).toBe(true);
  });
});
