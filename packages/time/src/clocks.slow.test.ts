import { expect, it } from '@jest/globals';
import { type CallStoreDriver, inProcessCalls } from 'millrace/journal';
import fc from 'fast-check';
import { concatMap, of, tap } from 'rxjs';
import { due$ } from './due.js';
import { set$, type Timer } from './timers.js';
import { collect, createClock } from './world.test-support.js';

const minute = 60_000;
const pollMs = 10_000;

/** Hosts on one store, each with a clock of its own that may be set. */
const createHosts = (hosts: number) => {
  const { scheduler, runTo } = createClock();
  const offsets = Array.from({ length: hosts }, () => 0);
  let writer = 0;
  const nowOf = (host: number): number => scheduler.now() + (offsets[host] ?? 0);
  const store = inProcessCalls(() => nowOf(writer));
  let listed = 0;
  const driver: CallStoreDriver = {
    ...store,
    list$: (query) =>
      store.list$(query).pipe(
        concatMap((calls) => calls.map((it) => [it])),
        tap(() => (listed += 1)),
      ),
  };
  const woken: { readonly id: string; readonly at: number }[] = [];
  const wake = (host: number) =>
    collect(
      due$<string>({
        ...{ driver, pollMs, parallel: 4, maxAttempts: 1 },
        scheduler: { now: () => nowOf(host), schedule: scheduler.schedule.bind(scheduler) },
        isWanted: (id) => id.startsWith('sleep:'),
        where: () => true,
        work$: ({ id }) => {
          woken.push({ id, at: scheduler.now() });
          return of({ type: 'done', reason: 'woken', notice: id });
        },
        failed: ({ id }) => id,
        looked$: () => of([]),
      }),
    );
  const sleep = (host: number, id: string, ms: number): Timer => {
    const timer = { id: `sleep:${id}`, at: nowOf(host) + ms, about: '', data: {} };
    writer = host;
    collect(set$(driver, timer)).stop();
    writer = 0;
    return timer;
  };
  return { scheduler, runTo, offsets, nowOf, driver, woken, wake, sleep, listed: () => listed };
};

const step = fc.record({
  host: fc.nat(2),
  /** Sets the clock of the host. */
  shift: fc.oneof(
    fc.constant(0),
    fc.integer({ min: -180, max: 180 }).map((it) => it * minute),
  ),
  /** Then sleeps, if any, and lets time pass. */
  sleepMs: fc.option(fc.integer({ min: 1, max: 120 }).map((it) => it * minute)),
  ms: fc.integer({ min: 0, max: 40 }).map((it) => it * minute),
});

it('wakes every sleep once, within a poll after its time by the clock of the host that wakes, however clocks are set', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const { scheduler, runTo, offsets, nowOf, woken, wake, sleep } = createHosts(3);
      wake(0);
      const sleeps = new Map<string, number>();
      /** Since when, in true time, the clock of the waking host shows that a sleep is over. */
      const dueAt = new Map<string, number>();
      const noteDue = (from: number, to: number): void => {
        for (const [id, at] of sleeps) {
          const due = Math.max(from, at - (offsets[0] ?? 0));
          if (!dueAt.has(id) && due + pollMs + minute <= to) dueAt.set(id, due);
        }
      };
      const pass = (ms: number): void => {
        const from = scheduler.now();
        runTo(from + ms);
        noteDue(from, from + ms);
        for (const [id, due] of dueAt) {
          const found = woken.filter((it) => it.id === id);
          expect(found).toHaveLength(1);
          expect(found[0]?.at).toBeLessThanOrEqual(due + pollMs);
        }
      };
      steps.forEach(({ host, shift, sleepMs, ms }, index) => {
        offsets[host] = (offsets[host] ?? 0) + shift;
        if (sleepMs !== null) {
          const { id, at } = sleep(host, `${index}`, sleepMs);
          sleeps.set(id, at);
        }
        pass(ms);
      });
      pass(Math.max(0, ...[...sleeps.values()].map((at) => at - nowOf(0))) + 2 * minute);
      expect(woken.map(({ id }) => id).toSorted()).toEqual([...sleeps.keys()].toSorted());
    }),
  );
});

const addCalls = ({ driver }: Pick<ReturnType<typeof createHosts>, 'driver'>, calls: number) => {
  const record = { kind: 'step', name: 'a', seq: 0, text: '{}' } as const;
  for (let call = 0; call < calls; call += 1) {
    const claimed$ = driver.claim$(`c${call}`);
    collect(claimed$.pipe(concatMap(({ append$ }) => append$([record])))).stop();
  }
};

it('finds within five minutes the sleep that a slow clock has dated too early, if a list is long', () => {
  const hosts = createHosts(2);
  const { runTo, woken, offsets, wake, sleep } = hosts;
  addCalls(hosts, 6_000);
  wake(0);
  runTo(10 * minute + 1);
  offsets[1] = -30 * minute;
  const { at } = sleep(1, 'late', 31 * minute);
  expect(at).toBe(11 * minute + 1);
  runTo(13 * minute);
  expect(woken).toMatchObject([{ id: 'sleep:late' }]);
  expect(woken[0]?.at).toBeLessThanOrEqual(12 * minute);
});

it.each([2_000, 4_000])('reads up to a hundred calls of a list a second: %i calls', (calls) => {
  const hosts = createHosts(1);
  addCalls(hosts, calls);
  hosts.wake(0);
  // What was written in the last minute is read at each look.
  hosts.runTo(2 * minute);
  const before = hosts.listed();
  hosts.runTo(2 * minute + 1_000_000);
  expect(hosts.listed() - before).toBeLessThanOrEqual(100_000 + calls);
});

it('reads a store again after its delay, though its clock is set back', () => {
  const { runTo, offsets, driver, wake, sleep, woken } = createHosts(1);
  wake(0);
  runTo(minute);
  offsets[0] = -60 * minute;
  sleep(0, 'a', minute);
  runTo(2 * minute + pollMs);
  expect(woken).toHaveLength(1);
  expect(collect(driver.list$({ isUnfinished: true })).seen.flat()).toEqual([]);
});
