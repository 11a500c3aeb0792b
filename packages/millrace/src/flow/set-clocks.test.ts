import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  NEVER,
  type Observable,
  of,
  type SchedulerLike,
  timer as after$,
  VirtualTimeScheduler,
  concat,
  map,
} from 'rxjs';
import {
  createAgent,
  type Model,
  type ModelContext,
  requireApproval,
  timeouts,
  tool,
} from '../index.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';
import { deadline, type Timeouts } from './deadline.js';

const hour = 3_600_000;
const limit = 1_000;

interface Jump {
  readonly at: number;
  /** By so many milliseconds, the clock is set forward, or back. */
  readonly by: number;
}

/** When work ends, in true time, if the clock is set meanwhile. */
const endOf = (
  work: (scheduler: SchedulerLike) => Observable<unknown>,
  jumps: readonly Jump[],
): number => {
  const scheduler = new VirtualTimeScheduler();
  let offset = 100 * hour;
  for (const { at, by } of jumps) scheduler.schedule(() => void (offset += by), at);
  let endedAt = Infinity;
  const end = (): void => void (endedAt = scheduler.now());
  work({
    now: () => scheduler.now() + offset,
    schedule: scheduler.schedule.bind(scheduler),
  }).subscribe({ error: end, complete: end });
  scheduler.maxFrames = 50 * hour;
  scheduler.flush();
  return endedAt;
};

const modelThat = (stream: (context: ModelContext) => Observable<never>, first = 0): Model => ({
  name: 'slow',
  stream$: (_request, context) =>
    first === 0 ? stream(context) : concat(of(text('Once'), text('upon')), stream(context)),
});
const mute = modelThat(() => NEVER);
const answer = [text('Done.')];
const stuck = tool({ name: 'stuck', description: 'S.', run: () => NEVER });

const call =
  (timeouts: Timeouts, options: object = { model: mute }) =>
  (scheduler: SchedulerLike): Observable<unknown> =>
    createAgent({ model: mute, ...options }).call$('?', { scheduler, limits: { timeouts } });

const waits: Readonly<Record<string, (scheduler: SchedulerLike) => Observable<unknown>>> = {
  'an operator': (scheduler) => NEVER.pipe(deadline(limit, scheduler, 'It')),
  callMs: call({ callMs: limit }),
  iterationMs: call({ iterationMs: limit }),
  firstChunkMs: call({ firstChunkMs: limit }),
  chunkMs: call({ chunkMs: limit }, { model: modelThat(() => NEVER, 1) }),
  'timeouts()': call({}, { model: timeouts(mute, { firstChunkMs: limit }) }),
  busyMs: call(
    { busyMs: limit },
    {
      model: modelThat(({ working }) => {
        working?.('reasoning');
        return NEVER;
      }),
    },
  ),
  toolMs: (scheduler) =>
    createAgent({ model: scriptedModel([toolCall('stuck')], answer), tools: [stuck] }).call$('?', {
      ...{ scheduler, limits: { timeouts: { toolMs: limit } } },
    }),
};

const jump = fc.record({
  at: fc.integer({ min: 0, max: limit }),
  by: fc.integer({ min: -24 * hour, max: 24 * hour }),
});

describe('C5: a clock that is set forward or back', () => {
  it.each(Object.entries(waits))('does not change the limit of %s', (_, work) => {
    expect(endOf(work, [])).toBe(limit);
    fc.assert(
      fc.property(fc.array(jump, { maxLength: 4 }), (jumps) => {
        expect(endOf(work, jumps)).toBe(limit);
      }),
      { examples: [[[{ at: 1, by: -hour }]], [[{ at: 999, by: hour }]]] },
    );
  });

  it('delays the limit of silence by no more than the limit, and never shortens it by more', () => {
    fc.assert(
      fc.property(
        fc.array(jump, { maxLength: 4 }),
        fc.integer({ min: 1, max: 999 }),
        (jumps, ms) => {
          const model: Model = {
            name: 'slow',
            stream$: (_request, { scheduler }) =>
              concat(of(text('a')), after$(ms, scheduler).pipe(map(() => text('b'))), NEVER),
          };
          const end = endOf(call({ chunkMs: limit }, { model }), jumps);
          expect(end).toBeGreaterThanOrEqual(limit);
          expect(end).toBeLessThanOrEqual(ms + 2 * limit);
          if (jumps.every(({ by }) => by === 0)) expect(end).toBe(ms + limit);
        },
      ),
    );
  });

  it('neither ends a call that waits for a person, nor counts that time', () => {
    const waiting = (ms: number) => (scheduler: SchedulerLike) => {
      const approved = requireApproval(stuck, () => after$(ms, scheduler).pipe(map(() => true)));
      const model = scriptedModel([toolCall('stuck')], answer);
      return call({ callMs: limit }, { model, tools: [approved] })(scheduler);
    };
    fc.assert(
      fc.property(
        fc.array(jump, { maxLength: 4 }),
        fc.integer({ min: limit + 1, max: 5 * limit }),
        (jumps, ms) => {
          expect(endOf(waiting(ms), jumps)).toBe(ms + limit);
        },
      ),
    );
    for (const ms of [1, 400, limit]) expect(endOf(waiting(ms), [])).toBe(ms + limit);
  });
});
