import { describe, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import * as phases from 'millrace/phases';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import fc from 'fast-check';
import { concatMap, map, of, type SchedulerLike } from 'rxjs';
import { schedule, sleep$, sleepLayer } from './index.js';
import { collect, createClock, day } from './world.test-support.js';

const hour = 3_600_000;
const pollMs = 600_000;

/** A clock that is set while time passes. */
const createSetClock = () => {
  const { scheduler, runTo } = createClock();
  const shown = { offset: 0 };
  const clock: SchedulerLike = {
    now: () => scheduler.now() + shown.offset,
    schedule: scheduler.schedule.bind(scheduler),
  };
  return { clock, shown, runTo, trueNow: () => scheduler.now() };
};

/** A schedule at nine each day, and the times of its calls. */
const startSchedule = (offset = 0) => {
  const { clock, shown, ...rest } = createSetClock();
  shown.offset = offset;
  const store = createCallStore(
    inProcessCalls(() => clock.now()),
    { scheduler: clock },
  );
  const fired: number[] = [];
  const start = () =>
    collect(
      schedule(({ at }) => of(fired.push(at)), '0 9 * * *', 'Go.', {
        ...{ name: 'daily', timeZone: 'UTC', store, pollMs, scheduler: clock },
      }),
    );
  start();
  return { ...rest, shown, fired, start };
};

const nines = (from: number, to: number): readonly number[] =>
  Array.from({ length: 200 }, (_, n) => n * day + 9 * hour).filter((at) => at > from && at <= to);

describe('a schedule whose clock is set', () => {
  it('has its times again after a clock that was years ahead', () => {
    const { shown, runTo, fired } = startSchedule(3_650 * day);
    runTo(hour);
    shown.offset = 0;
    runTo(3 * day);
    expect(fired).toEqual(nines(0, 3 * day));
  });

  it('makes the call of a time once, though the clock shows it twice', () => {
    const { shown, runTo, fired, start } = startSchedule();
    runTo(10 * hour);
    shown.offset = -2 * hour;
    start();
    runTo(2 * day);
    expect(fired).toEqual(nines(0, 2 * day - 2 * hour));
  });

  it('makes no call twice, and misses none once the clock is right', () => {
    const step = fc.record({
      shift: fc.integer({ min: -40 * 24, max: 40 * 24 }).map((it) => it * hour),
      ms: fc.integer({ min: 0, max: 30 }).map((it) => it * hour),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 6 }), (steps) => {
        // Far from the time zero, before which there is no date of a call.
        const { shown, runTo, trueNow, fired } = startSchedule();
        for (const { shift, ms } of steps) {
          shown.offset = Math.max(-trueNow(), shown.offset + shift);
          runTo(trueNow() + ms);
        }
        shown.offset = 0;
        const from = trueNow();
        runTo(from + 3 * day);
        expect(new Set(fired).size).toBe(fired.length);
        expect(fired).toEqual(expect.arrayContaining([...nines(from + pollMs, from + 3 * day)]));
      }),
      { numRuns: 50 },
    );
  });
});

describe('a sleep of a process whose clock is set back', () => {
  it('of a phase lasts no longer', () => {
    const { clock, shown, runTo } = createSetClock();
    const pause: phases.PhaseFactory = (context) => (run$) =>
      run$.pipe(concatMap((run) => sleep$(context, 'pause', 2 * hour).pipe(map(() => run))));
    const model = scriptedModel([text('Awake.')]);
    const agent = createAgent({ model, use: [phases.insertBefore(phases.reasoning, pause)] });
    const limits = { timeouts: { callMs: 20 * day } };
    const { seen } = collect(agent.call$('Sleep.', { scheduler: clock, limits }));
    runTo(hour);
    shown.offset = -day;
    runTo(2 * hour - 1);
    expect(seen).toEqual([]);
    runTo(2 * hour);
    expect(seen).toMatchObject([{ text: 'Awake.' }]);
  });

  it('of the tool lasts no longer, unless it is until a time', () => {
    const outputOf = (input: Readonly<Record<string, unknown>>): unknown => {
      const { clock, shown, runTo } = createSetClock();
      const store = createCallStore(inProcessCalls(() => clock.now()));
      const model = scriptedModel([toolCall('sleep', input)], [text('Awake.')]);
      const agent = createAgent({ model, use: [sleepLayer(store)] });
      const { seen } = collect(agent.call$('Sleep.', { scheduler: clock }));
      runTo(1_000);
      shown.offset = -20_000;
      runTo(31_000);
      return seen[0]?.toolCalls[0]?.isError;
    };
    expect(outputOf({ seconds: 30 })).toBe(false);
    expect(outputOf({ until: '1970-01-01T00:00:30Z' })).toBeUndefined();
  });
});
