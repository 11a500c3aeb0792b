import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, interval, lastValueFrom, take, timer, toArray } from 'rxjs';
import { backgroundScheduler } from './background-scheduler.js';

describe('the scheduler for housekeeping', () => {
  it('runs timers once, and again, like those of RxJS', async () => {
    expect(await firstValueFrom(timer(1, backgroundScheduler))).toBe(0);
    expect(await lastValueFrom(interval(1, backgroundScheduler).pipe(take(3), toArray()))).toEqual([
      0, 1, 2,
    ]);
  });

  it('runs nothing after its end', async () => {
    const seen: unknown[] = [];
    const action = backgroundScheduler.schedule((it) => seen.push(it), 1, 'a');
    backgroundScheduler.schedule((it) => seen.push(it), 1, 'b');
    action.unsubscribe();
    await firstValueFrom(timer(20));
    expect(seen).toEqual(['b']);
    expect(action.closed).toBe(true);
  });

  it('reports when its work is over', async () => {
    const action = backgroundScheduler.schedule(() => undefined, 1);
    await firstValueFrom(timer(20));
    expect(action.closed).toBe(true);
  });
});
