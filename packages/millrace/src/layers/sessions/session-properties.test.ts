import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  catchError,
  concat,
  defaultIfEmpty,
  defer,
  delayWhen,
  finalize,
  firstValueFrom,
  identity,
  ignoreElements,
  map,
  merge,
  mergeMap,
  NEVER,
  type Observable,
  of,
  takeUntil,
  tap,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import { createAgent } from '../../agent.js';
import { on } from '../../seams/interceptor.js';
import { prepare } from '../interceptors/prepare.js';
import { transformChunks } from '../interceptors/guard-output.js';
import { unpaired } from '../../values/pairing.js';
import { finish, text, toolCall, verifyEvents } from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { sessions } from './index.js';

const step = fc.record({
  at: fc.nat(40),
  act: fc.oneof(
    fc.record({
      type: fc.constant('call' as const),
      onBusy: fc.constantFrom('reject', 'queue', 'switch', 'steer' as const),
      leaveAfter: fc.option(fc.nat(20)),
    }),
    fc.record({ type: fc.constant('interrupt' as const) }),
    fc.record({ type: fc.constant('steer' as const) }),
    fc.record({ type: fc.constant('clear' as const) }),
  ),
});

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

const call = (at: number, leaveAfter: number | null = null): Step => ({
  at,
  act: { type: 'call', onBusy: 'reject', leaveAfter },
});

/** Schedules with each usual outcome, however few runs there are. */
const examples: [Step[]][] = [
  [[call(0), { at: 0, act: { type: 'steer' } }, call(2)]],
  [[call(0, 3), { at: 40, act: { type: 'steer' } }]],
];

/** Plays a schedule of calls and interruptions on one session in virtual time, and tells what came of it. */
const play = (steps: readonly Step[]) => {
  const scheduler = new VirtualTimeScheduler();
  const after = (ms: number): Observable<unknown> => timer(ms, scheduler);
  let requests = 0;
  let busy = 0;
  let most = 0;
  const agent = createAgent({
    model: {
      name: 'random',
      stream$: () =>
        defer(() => {
          requests += 1;
          busy += 1;
          most = Math.max(most, busy);
          const last = requests % 2 === 0 ? [toolCall('work'), finish()] : [finish()];
          return concat(after(2).pipe(map(() => text('so '))), after(1).pipe(mergeMap(() => last)));
        }).pipe(
          finalize(() => {
            busy -= 1;
          }),
        ),
    },
    tools: [
      tool({ name: 'work', description: 'Works.', run: () => after(3).pipe(map(() => 'ok')) }),
    ],
    use: [
      prepare(delayWhen(() => after(1))),
      on(
        'postReasoning',
        delayWhen(() => after(1)),
      ),
      transformChunks(map((chunk) => chunk)),
    ],
  });
  const session = sessions(agent, { maxQueue: 1 }).open('s');
  const ends: string[] = [];
  const call$ = ({ onBusy, leaveAfter }: Extract<Step['act'], { type: 'call' }>, callId: string) =>
    session.stream$('?', { onBusy, callId, scheduler }).pipe(
      onBusy === 'steer' ? identity : verifyEvents(),
      ignoreElements(),
      catchError((error: unknown) => of(String(Reflect.get(Object(error), 'code') ?? error))),
      defaultIfEmpty('completed'),
      takeUntil(leaveAfter === null ? NEVER : after(leaveAfter)),
      defaultIfEmpty('left'),
    );
  const act$ = ({ at, act }: Step, index: number): Observable<unknown> =>
    after(at).pipe(
      mergeMap(() => {
        switch (act.type) {
          case 'interrupt':
            return of(session.interrupt());
          case 'clear':
            return of(session.queue.clear());
          case 'steer':
            return session.steer$('also').pipe(tap(({ status }) => ends.push(status)));
          case 'call':
            return call$(act, `c${index}`).pipe(tap((end) => ends.push(end)));
        }
      }),
    );
  merge(...steps.map(act$)).subscribe();
  scheduler.flush();
  return { session, ends, most, busy };
};

describe('a session, after any operations', () => {
  it('S3: calls it one at a time, ends each, and leaves whole pairs and an empty queue (I1)', async () => {
    const outcomes = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 12 }), async (steps) => {
        const { session, ends, most, busy } = play(steps);
        const said = steps.filter(({ act }) => act.type === 'call' || act.type === 'steer');
        expect(ends).toHaveLength(said.length);
        expect(most).toBeLessThanOrEqual(1);
        expect(busy).toBe(0);
        expect(session.queue.calls).toEqual([]);
        expect(session.interrupt()).toBe(false);
        expect(unpaired(await firstValueFrom(session.memory.load$()))).toBeUndefined();
        ends.forEach((end) => outcomes.add(end));
      }),
      { numRuns: 500, examples },
    );
    const usual = ['completed', 'left', 'busy', 'delivered', 'notDelivered'];
    expect([...outcomes]).toEqual(expect.arrayContaining(usual));
  });
});
