import { describe, expect, it, jest } from '@jest/globals';
import { firstValueFrom, lastValueFrom, take, toArray } from 'rxjs';
import { createDemand, openDemand } from './demand.js';
import { fromPull } from './from-pull.js';

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

  it('I16: takes nothing while demand is closed, and continues when it opens', async () => {
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

  it('I5: on unsubscribe the signal aborts in the same tick, and the iterator gets return()', async () => {
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

  it('stops pulling for a consumer that has enough', async () => {
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

  it('reports a change within a change as it is in the end', () => {
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

  it('shows the present level to a late subscriber, also after its consumer has gone', async () => {
    const gate = createDemand(1);
    gate.backlog(1);
    expect(await firstValueFrom(gate.open$)).toBe(false);
    gate.release();
    gate.backlog(5);
    expect(await firstValueFrom(gate.open$)).toBe(true);
  });
});
