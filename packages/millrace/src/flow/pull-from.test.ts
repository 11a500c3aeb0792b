import { describe, expect, it } from '@jest/globals';
import { concat, of, Subject, throwError } from 'rxjs';
import type { Demand } from './demand.js';
import { pullFrom } from './pull-from.js';

const over = { done: true, value: undefined };

describe('pullFrom', () => {
  it('hands out what waits, and answers those who wait, in order', async () => {
    const value$ = new Subject<number>();
    const puller = pullFrom(() => value$);
    const asked = [puller.next(), puller.next()];
    for (const value of [1, 2, 3]) value$.next(value);
    asked.push(puller.next(), puller.next());
    value$.complete();
    asked.push(puller.next());
    const results = await Promise.all(asked);
    expect(results.map(({ value }) => value)).toEqual([1, 2, 3, undefined, undefined]);
    expect(results.map(({ done }) => done)).toEqual([false, false, false, true, true]);
  });

  it('drops what waits when it is left, and is over then', async () => {
    const puller = pullFrom(() => of(1, 2, 3));
    await puller.next();
    expect(await puller.return()).toEqual(over);
    expect(await puller.next()).toEqual(over);
    const failing = pullFrom(() =>
      concat(
        of(1),
        throwError(() => new Error('broken')),
      ),
    );
    await failing.next();
    await failing.return();
    expect(await failing.next()).toEqual(over);
  });

  it('reports an error once, to the next who asks', async () => {
    const puller = pullFrom(() => throwError(() => new Error('broken')));
    await expect(puller.next()).rejects.toThrow('broken');
    expect(await puller.next()).toEqual(over);
    const value$ = new Subject<number>();
    const waiting = pullFrom(() => value$);
    const asked = [waiting.next(), waiting.next()] as const;
    value$.error(new Error('broken'));
    await expect(asked[0]).rejects.toThrow('broken');
    expect(await asked[1]).toEqual(over);
  });

  it('I16: closes the demand at its mark, and opens it at half of it', async () => {
    const value$ = new Subject<number>();
    let level: Demand | undefined;
    const puller = pullFrom((demand) => {
      level = demand;
      return value$;
    }, 4);
    const first = puller.next();
    for (let n = 0; n < 5; n += 1) value$.next(n);
    expect(level?.isOpen).toBe(false);
    await first;
    await puller.next();
    expect(level?.isOpen).toBe(false);
    await puller.next();
    expect(level?.isOpen).toBe(true);
  });
});
