import { describe, expect, it } from '@jest/globals';
import { delay, from, NEVER, of, lastValueFrom, toArray, VirtualTimeScheduler } from 'rxjs';
import { createAgent, type Model, textOf, tool } from '../index.js';
import { sessions } from '../layers/sessions/index.js';
import { finish, text, toolCall } from '../testing/index.js';
import { createCallStore, fork$, inProcessCalls, journal } from './index.js';
import type { ResumedCall } from './resume-all.js';

/** Answers after one tool call; `hangs` never answers. */
const modelOf = (last: 'answers' | 'hangs' | 'fails'): Model => ({
  name: last,
  stream$: ({ messages }) => {
    if (!messages.some(({ role }) => role === 'tool')) return from([toolCall('pay'), finish()]);
    if (last === 'fails') throw new Error('It fails.');
    return last === 'hangs' ? NEVER : from([text('Done.'), finish()]);
  },
});

const world = () => {
  const store = createCallStore(inProcessCalls());
  const paid: string[] = [];
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    run: (_input, { callId }) => {
      paid.push(callId);
      return 'Paid.';
    },
  });
  const agentOf = (last: 'answers' | 'hangs' | 'fails', name = 'agent') =>
    createAgent({ name, model: modelOf(last), tools: [pay] });
  /** Leaves a call where its process ended. */
  const leave = (callId: string, name?: string): void => {
    const agent = agentOf('hangs', name);
    agent.with(journal(store)).call$('Pay.', { callId }).subscribe().unsubscribe();
  };
  return { store, durable: journal(store), pay, paid, agentOf, leave };
};

const idsOf = (resumed: readonly ResumedCall[]): readonly string[] =>
  resumed.map(({ status, callId }) => `${status} ${callId}`);

describe('S6: resumeAll$', () => {
  it('resumes the unfinished calls of an agent, the oldest first, and repeats no effect', async () => {
    const { store, durable, paid, agentOf, leave } = world();
    ['a', 'b', 'c'].forEach((callId) => leave(callId));
    leave('other', 'another');
    const ofSession = sessions(agentOf('hangs').with(durable)).open('s');
    ofSession.call$('Pay.', { callId: 'in-session' }).subscribe().unsubscribe();
    await agentOf('answers').with(durable).call('Pay.', { callId: 'ended' });
    await agentOf('fails')
      .with(durable)
      .call('Pay.', { callId: 'failed' })
      .catch(() => undefined);
    await lastValueFrom(fork$(store, 'a', { at: { iteration: 1 } }));
    const running = store.driver.claim$('b').subscribe();
    const before = [...paid];
    const resumed = await lastValueFrom(durable.resumeAll$(agentOf('answers')).pipe(toArray()));
    expect(idsOf(resumed)).toEqual(['resumed a', 'resumed c']);
    for (const it of resumed) expect(it).toMatchObject({ reply: { reason: 'answer' } });
    expect(resumed.map((it) => (it.status === 'resumed' ? textOf(it.reply) : ''))).toEqual([
      ...['Done.', 'Done.'],
    ]);
    running.unsubscribe();
    const rest = await lastValueFrom(durable.resumeAll$(agentOf('answers')).pipe(toArray()));
    expect(idsOf(rest)).toEqual(['resumed b']);
    expect(await lastValueFrom(durable.resumeAll$(agentOf('answers')).pipe(toArray()))).toEqual([]);
    expect(paid).toEqual(before);
    const forks$ = durable.resumeAll$(agentOf('answers'), {
      where: ({ forkedFrom }) => forkedFrom !== undefined,
    });
    expect(await lastValueFrom(forks$.pipe(toArray()))).toHaveLength(1);
  });

  it('emits the error of a call, and continues with the others', async () => {
    const { durable, pay, leave } = world();
    ['a', 'b'].forEach((callId) => leave(callId));
    let asked = 0;
    const flaky: Model = {
      name: 'flaky',
      stream$: (request, context) => {
        asked += 1;
        return modelOf(asked === 1 ? 'fails' : 'answers').stream$(request, context);
      },
    };
    const agent = createAgent({ name: 'agent', model: flaky, tools: [pay] });
    const resumed = await lastValueFrom(durable.resumeAll$(agent, { parallel: 1 }).pipe(toArray()));
    expect(idsOf(resumed)).toEqual(['failed a', 'resumed b']);
    expect(resumed[0]).toMatchObject({
      error: { code: 'unknown', message: expect.stringContaining('It fails.') },
    });
  });

  it.each([
    [undefined, 4],
    [2, 2],
  ])('with parallel %p, runs %d calls at the same time', (parallel, most) => {
    const { durable, leave } = world();
    Array.from({ length: 9 }, (_, at) => leave(`c${at}`));
    const scheduler = new VirtualTimeScheduler();
    let running = 0;
    const peaks: number[] = [];
    const slow: Model = {
      name: 'slow',
      stream$: () => {
        running += 1;
        peaks.push(running);
        return of(text('Done.'), finish()).pipe(delay(10, scheduler));
      },
    };
    const agent = createAgent({ name: 'agent', model: slow });
    const ended: ResumedCall[] = [];
    durable.resumeAll$(agent, { ...(parallel !== undefined && { parallel }) }).subscribe((it) => {
      running -= 1;
      ended.push(it);
    });
    scheduler.flush();
    expect(ended).toHaveLength(9);
    expect(Math.max(...peaks)).toBe(most);
  });

  it('is cold, and unsubscribing leaves the calls as they are', () => {
    const { durable, agentOf, leave, store } = world();
    ['a', 'b'].forEach((callId) => leave(callId));
    const all$ = durable.resumeAll$(agentOf('hangs'));
    const open = store.driver.claim$('a').subscribe();
    open.unsubscribe();
    all$.subscribe().unsubscribe();
    const ids: string[] = [];
    durable.resumeAll$(agentOf('answers')).subscribe(({ callId }) => ids.push(callId));
    expect(ids).toEqual(['a', 'b']);
  });

  it('refuses what is no agent, options that cannot be, and a journal without a list', () => {
    const { durable, agentOf } = world();
    const agent = agentOf('answers');
    expect(() => durable.resumeAll$(sessions(agent).open('s') as never)).toThrow('needs an agent');
    expect(() => durable.resumeAll$(agent, { parallel: 0 })).toThrow("'parallel' must be");
    const errors: unknown[] = [];
    journal((_id, work) => work())
      .resumeAll$(agent)
      .subscribe({ error: (error: unknown) => errors.push(error) });
    expect(errors).toEqual([expect.objectContaining({ code: 'config' })]);
  });
});
