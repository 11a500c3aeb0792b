import { describe, expect, it } from '@jest/globals';
import { concatMap, delay, map, NEVER, of, type SchedulerLike, take, tap, timer } from 'rxjs';
import {
  type AgentEvent,
  approval,
  createAgent,
  type Model,
  retry,
  timeouts,
  tool,
} from '../index.js';
import { sessions } from '../layers/sessions/index.js';
import { marbles, scriptedModel, text, toolCall } from '../testing/index.js';

const minute = 60_000;
const silent: Model = { name: 'silent', stream$: () => NEVER };

/** What happened, and when, until the call ended. */
const heard = (
  run: (scheduler: SchedulerLike) => ReturnType<ReturnType<typeof createAgent>['stream$']>,
): readonly string[] => {
  const seen: string[] = [];
  marbles(({ scheduler, flush }) => {
    const note = (what: string) => seen.push(`${scheduler.now()} ${what}`);
    run(scheduler)
      .pipe(
        tap((event: AgentEvent) => {
          if (event.type === 'modelWaiting') note(`waiting ${event.waitedMs}`);
          else if (event.type === 'modelRetry') note('retry');
          else if (event.type === 'postCall') note(event.reply.reason);
        }),
      )
      .subscribe({ error: (error: { code: string }) => note(error.code) });
    flush();
  });
  return seen;
};

describe('C5: time-outs', () => {
  it('a call ends after 30 minutes', () => {
    const agent = createAgent({ model: silent });
    expect(heard((scheduler) => agent.stream$('?', { scheduler }))).toEqual([
      `${30 * minute} timeout`,
    ]);
    const longer = { callMs: 60 * minute };
    expect(
      heard((scheduler) => agent.stream$('?', { scheduler, limits: { timeouts: longer } })),
    ).toEqual([`${60 * minute} timeout`]);
  });

  it('X4: a wait for the first content is reported after 10 seconds, and repeated once', () => {
    const model = retry(timeouts(silent, { firstChunkMs: 20_000 }), {
      attempts: 5,
      minMs: 1_000,
      jitter: 0,
    });
    expect(heard((scheduler) => createAgent({ model }).stream$('?', { scheduler }))).toEqual([
      '10000 waiting 10000',
      '20000 retry',
      '31000 waiting 10000',
      '41000 timeout',
    ]);
  });

  it('a model that answers within 10 seconds, or has begun to, is no news', () => {
    const slow: Model = {
      name: 'slow',
      stream$: (_request, { scheduler }) =>
        timer(9_000, 30_000, scheduler).pipe(
          take(2),
          map((n) => (n === 0 ? text('Hi.') : { type: 'finish', finish: 'stop' as const })),
        ),
    };
    const model = timeouts(slow, { firstChunkMs: 20_000, chunkMs: 40_000 });
    expect(heard((scheduler) => createAgent({ model }).stream$('?', { scheduler }))).toEqual([
      '39000 answer',
    ]);
  });

  it('callMs does not count the wait for an approval, nor the wait in the queue of a session', () => {
    const pay = tool({ name: 'pay', description: 'Pays.', run: () => 'Paid.' });
    const hang = tool({ name: 'hang', description: 'Hangs.', run: () => NEVER });
    const asked = (scheduler: SchedulerLike) => ({
      scheduler,
      limits: { timeouts: { callMs: 100, toolMs: 10_000 } },
      use: [approval(() => of(true).pipe(delay(5_000, scheduler)))],
    });
    const patient = createAgent({
      model: scriptedModel([toolCall('pay')], [text('Ok.')]),
      tools: [pay],
    });
    expect(heard((scheduler) => patient.stream$('?', asked(scheduler)))).toEqual(['5000 answer']);
    const stuck = createAgent({ model: scriptedModel([toolCall('hang')]), tools: [hang] });
    expect(heard((scheduler) => stuck.stream$('?', asked(scheduler)))).toEqual(['5100 timeout']);
    const first: Model = {
      name: 'first',
      stream$: (_request, { scheduler }) =>
        timer(3_000, scheduler).pipe(
          concatMap(() => [text('Hi.'), { type: 'finish', finish: 'stop' }] as const),
        ),
    };
    expect(
      heard((scheduler) => {
        const session = sessions(createAgent({ model: silent }), { onBusy: 'queue' }).open('s');
        session.call$('?', { model: first, scheduler }).subscribe({ error: () => undefined });
        return session.stream$('?', { scheduler, limits: { timeouts: { callMs: 100 } } });
      }),
    ).toEqual(['3100 timeout']);
  });
});
