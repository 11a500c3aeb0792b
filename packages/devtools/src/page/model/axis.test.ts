import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  axisOf,
  barsIn,
  durationText,
  joinClusters,
  marblesIn,
  ticksIn,
  type Window,
} from './axis.js';
import { createRun } from './run.js';
import { eventOf, runOf } from './runs.test-support.js';

const textOf = (times: readonly number[]) => {
  const run = createRun();
  run.log.append([
    eventOf('preCall', 0, { input: [] }),
    runOf(times.map(String), 0, { ats: times }),
  ]);
  const series = run.lanes.root?.lanes.find(({ kind }) => kind === 'model')?.series.get('text');
  if (series === undefined) throw new Error('There are no chunks.');
  return { run, series };
};

describe('the axis', () => {
  it('leaves idle times out, and finds the times of its pixels again', () => {
    const { run } = textOf([0, 500, 10_500, 10_600, 60_600]);
    const plain = axisOf(run.log, false);
    const compressed = axisOf(run.log, true);
    expect([plain.length, compressed.length]).toEqual([60_600, 500 + 250 + 100 + 250]);
    expect([0, 500, 10_500, 10_600, 60_600].map((time) => compressed.toAxis(time))).toEqual([
      0, 500, 750, 850, 1100,
    ]);
    expect(compressed.toAxis(5500)).toBe(625);
    for (const axis of [plain, compressed]) {
      for (const time of [0, 250, 500, 3000, 10_500, 10_550, 30_000, 60_600]) {
        expect(axis.toTime(axis.toAxis(time))).toBeCloseTo(time, 6);
      }
    }
    expect(axisOf(run.log, true, 40).toAxis(750)).toBe(axisOf(run.log, true).toAxis(750) + 40);
  });

  it('has round ticks with room between them', () => {
    const { run } = textOf([0, 500, 9000]);
    const labels = (scale: number, left: number, isCompressed = false) =>
      ticksIn({ axis: axisOf(run.log, isCompressed), left, right: 900, scale }).map(
        ({ label }) => label,
      );
    expect(labels(0.1, 0)).toEqual([...'0123456789'].map((second) => `${second} s`));
    expect(labels(5, 200)).toEqual([
      '40 ms',
      '60 ms',
      '80 ms',
      '100 ms',
      '120 ms',
      '140 ms',
      '160 ms',
      '180 ms',
    ]);
  });

  it('has ticks of true times where idle times are compressed', () => {
    const { run } = textOf([0, 500, 9000, 9900]);
    const axis = axisOf(run.log, true);
    const ticks = ticksIn({ axis, left: 0, right: 900, scale: 0.5 });
    expect(ticks.map(({ label }) => label)).toEqual([
      ...[
        '0 ms',
        '200 ms',
        '400 ms',
        '1.4 s',
        '5.8 s',
        '9.2 s',
        '9.4 s',
        '9.6 s',
        '9.8 s',
        '10.0 s',
      ],
    ]);
    const gaps = ticks.map(({ x }, at) => x - (ticks[at - 1]?.x ?? -90));
    expect(Math.min(...gaps)).toBeGreaterThan(60);
  });

  it('writes durations for people', () => {
    expect([0.5, 12, 999, 1500, 12_345, 125_000, 539_900].map((ms) => durationText(ms))).toEqual([
      '0.5 ms',
      '12 ms',
      '999 ms',
      '1.5 s',
      '12 s',
      '2:05 min',
      '9:00 min',
    ]);
  });
});

describe('clusters', () => {
  const windowOf = (run: ReturnType<typeof textOf>['run'], scale: number, left = 0): Window => ({
    ...{ axis: axisOf(run.log, false), scale, left, right: left + 1000 },
  });

  it('hold the marbles that are too close, and nothing is lost', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 200 }),
        fc.double({ min: 0.05, max: 3, noNaN: true }),
        (steps, scale) => {
          let now = 0;
          const { run, series } = textOf(steps.map((step) => (now += step)));
          const marbles = marblesIn(series, { ...windowOf(run, scale), right: Infinity }, 40);
          expect(marbles.reduce((sum, { count }) => sum + count, 0)).toBe(steps.length);
          expect(marbles.flatMap(({ position, until }) => [position, until])).toEqual(
            marbles.flatMap(({ position, until }) => [position, until]).sort((a, b) => a - b),
          );
          expect(new Set(marbles.map(({ key }) => key)).size).toBe(marbles.length);
          const singles = marbles.filter(({ count }) => count === 1);
          expect(singles.every(({ x }, at) => at === 0 || x > (singles[at - 1]?.x ?? 0))).toBe(
            true,
          );
        },
      ),
      { numRuns: 60 },
    );
  });

  it('are as many as there is room for, however many marbles there are', () => {
    for (const count of [1000, 100_000]) {
      const { run, series } = textOf(Array.from({ length: count }, (_, at) => at));
      expect(marblesIn(series, windowOf(run, 1000 / count), 40).length).toBeLessThanOrEqual(26);
    }
  });

  it('do not change when the window moves', () => {
    const { run, series } = textOf(Array.from({ length: 4000 }, (_, at) => at * 3));
    const [first, second] = [windowOf(run, 1, 2000), windowOf(run, 1, 2013)].map((window) =>
      marblesIn(series, window, 40),
    );
    const shared = second?.filter(({ x }) => x < 2900) ?? [];
    expect(first).toEqual(expect.arrayContaining(shared));
    expect(shared.length).toBeGreaterThan(20);
  });

  it('look at one marble a cluster', () => {
    const { run, series } = textOf(Array.from({ length: 50_000 }, (_, at) => at));
    let looks = 0;
    const ats = new Proxy(series.ats, {
      get: (target, name, self) => {
        if (/^\d+$/u.test(String(name))) looks += 1;
        return Reflect.get(target, name, self) as unknown;
      },
    });
    marblesIn({ ...series, ats }, windowOf(run, 0.02), 40);
    expect(looks).toBeLessThan(26 * 60);
  });
});

describe('clusters of several kinds', () => {
  it('are one if they would cover each other', () => {
    const cluster = (kind: string, x: number, width: number) => ({
      ...{ key: `${kind} bin ${x}`, kind, x, width, count: 5, position: x, until: x + 4 },
    });
    const single = { ...cluster('postReasoning', 12, 0), count: 1 };
    const joined = joinClusters([
      cluster('text', 20, 30),
      cluster('thinking', 0, 30),
      single,
      cluster('text', 60, 30),
      cluster('text', 90, 10),
    ]);
    expect(
      joined.map(({ kind, x, width, count, position, until }) => [
        kind,
        x,
        width,
        count,
        position,
        until,
      ]),
    ).toEqual([
      ['mixed', 0, 50, 10, 0, 24],
      ['text', 60, 30, 5, 60, 64],
      ['text', 90, 10, 5, 90, 94],
      ['postReasoning', 12, 0, 1, 12, 16],
    ]);
  });
});

describe('bars', () => {
  it('are those that the window touches, however long ago they began', () => {
    const run = createRun();
    run.log.append([
      eventOf('preActing', 0, { toolCall: { id: 'a', name: 'a', input: {} } }),
      ...Array.from({ length: 50 }, (_, at) => [
        eventOf('preReasoning', 100 + at * 20, { messages: [] }),
        eventOf('postReasoning', 110 + at * 20, {
          message: { id: `c/${at}`, content: [] },
          usage: {},
        }),
      ]).flat(),
    ]);
    const window: Window = { axis: axisOf(run.log, false), scale: 1, left: 500, right: 600 };
    const [model, tool] = ['model', 'a'].map((label) =>
      run.lanes.root?.lanes.find((lane) => lane.label === label),
    );
    if (model === undefined || tool === undefined) throw new Error('A lane is missing.');
    expect(barsIn(model, window, run.log.lastAt).map(({ x }) => x)).toEqual([
      500, 520, 540, 560, 580, 600,
    ]);
    expect(barsIn(tool, window, run.log.lastAt).map(({ x, width }) => [x, width])).toEqual([
      [0, 1090],
    ]);
  });
});
