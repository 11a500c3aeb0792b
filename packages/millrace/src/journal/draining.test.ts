import { describe, expect, it } from '@jest/globals';
import {
  asapScheduler,
  catchError,
  concat,
  concatMap,
  delay,
  filter,
  map,
  NEVER,
  type Observable,
  of,
  type SchedulerLike,
  timer,
} from 'rxjs';
import { type AgentOptions, createAgent, isMillraceError, textOf, tool } from '../index.js';
import { finish, marbles, record, scriptedModel, text, toolCall } from '../testing/index.js';
import { stepsIn } from './dying-driver.test-support.js';
import {
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  draining,
  journal,
} from './index.js';
import { sessions } from '../layers/sessions/index.js';

const noop = tool({ name: 'noop', description: 'Does nothing.', run: () => 'Done.' });

/** Its model takes five frames for each message, and asks for a tool before it answers. */
const slow = (scheduler: SchedulerLike, options: Partial<AgentOptions> = {}) =>
  createAgent({
    model: {
      name: 'slow',
      stream$: ({ messages }) =>
        concat(
          of(messages.length === 1 ? toolCall('noop') : text('Done.')).pipe(delay(5, scheduler)),
          of(finish()),
        ),
    },
    tools: [noop],
    ...options,
  });

const codes = <T>(source: Observable<T>): Observable<T | string> =>
  source.pipe(
    catchError((error: unknown) => of(isMillraceError(error) ? error.code : String(error))),
  );

const reasons = (source: Observable<{ readonly reason: string }>): Observable<string> =>
  codes(source.pipe(map(({ reason }) => reason)));

describe('an agent that is drained', () => {
  it('S8: brings a call with a journal to its next boundary, and it can be resumed', async () => {
    const durable = journal(createCallStore(inProcessCalls()));
    marbles(({ scheduler, expectObservable }) => {
      const agent = slow(scheduler, { use: [durable] });
      expectObservable(reasons(agent.call$('?', { callId: 'c', scheduler }))).toBe('-----(a|)', {
        a: 'aborted',
      });
      expectObservable(durable.drain$({ scheduler }), '--^').toBe('-----(a|)', {
        a: { resumable: ['c'], lost: 0 },
      });
    });
    const model = scriptedModel([text('After all.')]);
    const next = journal(durable.store);
    const after = createAgent({ model, tools: [noop], use: [next] });
    const reply = await next.resume(after, 'c');
    expect([textOf(reply), reply.toolCalls.length]).toEqual(['After all.', 1]);
  });

  it('S8: runs a tool whose intent is recorded, which would be uncertain otherwise', async () => {
    const driver = inProcessCalls();
    marbles(({ scheduler, expectObservable }) => {
      const late: CallStoreDriver = {
        ...driver,
        claim$: (callId) =>
          driver.claim$(callId).pipe(
            map(({ append$ }) => ({
              append$: (records) => timer(2, scheduler).pipe(concatMap(() => append$(records))),
            })),
          ),
      };
      const durable = journal(createCallStore(late, { scheduler }));
      const agent = slow(scheduler, { use: [durable] });
      const events$ = agent.stream$('?', { callId: 'c', scheduler });
      const drained$ = events$.pipe(
        catchError(() => NEVER),
        filter(({ type }) => type === 'preActing'),
        concatMap(() => durable.drain$({ scheduler })),
        map(({ resumable }) => resumable),
      );
      expectObservable(drained$).toBe('25ms a', { a: ['c'] });
    });
    expect(await stepsIn(driver)).toEqual(['call', 'open', '1', '1/0/intent', '1/0']);
  });

  it.each([2, 3])(
    'S8: lets the tools end that run beside one that is refused (%d at the same time)',
    async (parallel) => {
      const driver = inProcessCalls();
      const store = createCallStore(driver);
      const [durable, next] = [journal(store), journal(store)];
      const uses = ['helper', 'pay', 'pay'].map((name) => toolCall(name));
      const agentIn = (scheduler?: SchedulerLike) => {
        return createAgent({
          model: scriptedModel(({ messages }) => (messages.length === 1 ? uses : [text('Paid.')])),
          tools: [
            tool({
              name: 'pay',
              description: 'Pays.',
              run: () =>
                scheduler === undefined ? 'Paid.' : of('Paid.').pipe(delay(20, scheduler)),
            }),
            tool({
              name: 'helper',
              description: 'Catches whatever comes.',
              idempotent: true,
              run: (_, parent) =>
                scheduler === undefined
                  ? 'Helped.'
                  : slow(scheduler, { name: 'helper' })
                      .call$('?', { parent })
                      .pipe(
                        map(textOf),
                        catchError(() => of('Nothing.')),
                      ),
            }),
          ],
          use: [durable],
          limits: { parallel },
        });
      };
      marbles(({ scheduler, expectObservable }) => {
        const agent = agentIn(scheduler);
        expectObservable(reasons(agent.call$('?', { callId: 'c', scheduler }))).toBe('20ms (a|)', {
          a: 'aborted',
        });
        expectObservable(durable.drain$({ scheduler }), '--^').toBe('20ms (a|)', {
          a: { resumable: ['c'], lost: 0 },
        });
      });
      const steps = await stepsIn(driver);
      expect(steps).toContain('1/1');
      expect(steps).not.toContain('1/0');
      expect(steps.includes('1/2')).toBe(parallel === 3);
      const events = await record(next.resumeStream$(agentIn(), 'c'));
      expect(events.filter(({ type }) => type === 'uncertain')).toHaveLength(1);
      expect(events.at(-1)).toMatchObject({
        reply: {
          reason: 'answer',
          toolCalls: [{ output: 'Helped.' }, { output: 'Paid.' }, { output: 'Paid.' }],
        },
      });
    },
  );

  it('S8: lets a call without one run to its end, and refuses others', () => {
    marbles(({ scheduler, expectObservable }) => {
      const calm = draining();
      const agent = slow(scheduler, { use: [calm] });
      expectObservable(reasons(agent.call$('?', { scheduler }))).toBe('----------(a|)', {
        a: 'answer',
      });
      expectObservable(calm.drain$({ scheduler }), '--^').toBe('----------(a|)', {
        a: { resumable: [], lost: 0 },
      });
      expectObservable(reasons(agent.call$('?', { scheduler })), '---^').toBe('---(a|)', {
        a: 'busy',
      });
    });
  });

  it('S8: cuts what takes too long', () => {
    marbles(({ scheduler, expectObservable }) => {
      const calm = draining();
      const agent = slow(scheduler, { use: [calm] });
      expectObservable(reasons(agent.call$('?', { scheduler }))).toBe('----(a|)', { a: 'aborted' });
      expectObservable(calm.drain$({ scheduler, timeoutMs: 2 }), '--^').toBe('----(a|)', {
        a: { resumable: [], lost: 1 },
      });
    });
  });

  it('S8: is drained immediately if nothing runs', async () => {
    const calm = draining();
    const agent = createAgent({ model: scriptedModel([text('a')]), use: [calm] });
    await agent.call('?');
    expect(await calm.drain()).toEqual({ resumable: [], lost: 0 });
    await expect(agent.call('?')).rejects.toMatchObject({ code: 'busy', retryable: true });
    expect(() => calm.drain$({ timeoutMs: -1 })).toThrow(/'timeoutMs' must be/u);
  });

  it('S8: records what a call begins with, so that it can be resumed, also if it has not begun yet', async () => {
    const driver = inProcessCalls();
    marbles(({ scheduler, expectObservable }) => {
      const late: CallStoreDriver = {
        ...driver,
        claim$: (callId) => timer(3, scheduler).pipe(concatMap(() => driver.claim$(callId))),
      };
      const durable = journal(createCallStore(late));
      const agent = slow(scheduler, { use: [durable] });
      expectObservable(
        reasons(sessions(agent).open('s').call$('?', { callId: 'c', scheduler })),
      ).toBe('---(a|)', {
        a: 'aborted',
      });
      expectObservable(durable.drain$({ scheduler }), '-^').toBe('---(a|)', {
        a: { resumable: ['c'], lost: 0 },
      });
    });
    expect(await stepsIn(driver)).toEqual(['call']);
    const model = scriptedModel([text('After all.')]);
    const next = journal(createCallStore(driver));
    const after = createAgent({ model, use: [next] });
    expect(textOf(await next.resume(sessions(after).open('s'), 'c'))).toBe('After all.');
  });

  it('S8: says of a call that was cut before it began that it is lost', () => {
    marbles(({ scheduler, expectObservable }) => {
      const never: CallStoreDriver = { ...inProcessCalls(), claim$: () => NEVER };
      const durable = journal(createCallStore(never));
      const agent = slow(scheduler, { use: [durable] });
      expectObservable(reasons(agent.call$('?', { callId: 'c', scheduler }))).toBe('---(a|)', {
        a: 'aborted',
      });
      expectObservable(durable.drain$({ scheduler, timeoutMs: 2 }), '-^').toBe('---(a|)', {
        a: { resumable: [], lost: 1 },
      });
    });
  });

  it('S8: brings the calls of all agents that share a journal to rest', async () => {
    const durable = journal(createCallStore(inProcessCalls()));
    const model = scriptedModel([text('a')], () => NEVER);
    const agents = ['one', 'other'].map((name) => createAgent({ name, model, use: [durable] }));
    const ends = agents.map((agent, index) =>
      agent.call('?', { callId: `${index}` }).then(
        ({ reason }) => reason,
        (error: unknown) => Reflect.get(Object(error), 'code'),
      ),
    );
    const drained = await durable.drain({ timeoutMs: 0, scheduler: asapScheduler });
    expect(drained.lost).toBe(0);
    expect(await Promise.all(ends)).toEqual(expect.arrayContaining(['aborted']));
    for (const agent of agents) {
      await expect(agent.call('?')).rejects.toMatchObject({ code: 'busy' });
    }
  });
});
