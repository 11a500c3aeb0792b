import { expect, it } from '@jest/globals';
import { of, Subject } from 'rxjs';
import { createSemaphore, type Semaphore } from './limit-concurrency.js';

// The time of the process, not of a clock: others may keep the machine busy.
const cpuMs = (): number => process.cpuUsage().user / 1_000;

const busyWith = (semaphore: Semaphore): readonly number[] => [semaphore.held, semaphore.waiting];

it('C6, X18: ten thousand wait, and are done one after the other when the first one is', () => {
  const timeOf = (n: number): number => {
    const semaphore = createSemaphore({ max: 1, maxQueue: n });
    const gate = new Subject<void>();
    let done = 0;
    semaphore.hold$(() => gate).subscribe();
    for (let i = 0; i < n; i += 1) {
      semaphore
        .hold$(() => of(i))
        .subscribe((value) => {
          if (value === done) done += 1;
        });
    }
    expect(busyWith(semaphore)).toEqual([1, n]);
    const start = cpuMs();
    gate.complete();
    expect(busyWith(semaphore)).toEqual([0, 0]);
    expect(done).toBe(n);
    return cpuMs() - start;
  };
  timeOf(10_000);
  const once = Math.min(timeOf(2_500), timeOf(2_500));
  expect(Math.min(timeOf(10_000), timeOf(10_000))).toBeLessThan(12 * Math.max(once, 3));
});
