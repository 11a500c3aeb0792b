import { describe, expect, it } from '@jest/globals';
import {
  concatMap,
  delay,
  firstValueFrom,
  map,
  merge,
  NEVER,
  of,
  timeout,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import { contextKey, createAgent, type Layer, textOf, tool } from '../../index.js';
import { calls$, createCallStore, inProcessCalls, journal } from '../../journal/index.js';
import { inProcessSessions, keepSessions, sessions } from './index.js';
import { record, scriptedModel, text, toolCall } from '../../testing/index.js';

/** A store whose every step takes a while. */
const slowJournal = (time: VirtualTimeScheduler, ms: number) => {
  const store = createCallStore(inProcessCalls());
  return {
    ...store,
    open$: <T>(callId: string, run: Parameters<typeof store.open$<T>>[1]) =>
      store.open$<T>(callId, (open) =>
        run({ ...open, step$: (id, work) => open.step$(id, work).pipe(delay(ms, time)) }),
      ),
  };
};

describe('the layers of a session', () => {
  it('S3: a call that is interrupted while it waits leaves the queue immediately, however slow its journal is', () => {
    const time = new VirtualTimeScheduler();
    const agent = createAgent({
      model: scriptedModel(NEVER),
      use: [journal(slowJournal(time, 15))],
    });
    const session = sessions(agent, { onBusy: 'queue' }).open('s');
    const left = ['a', 'b'].map((callId) =>
      session.call$('?', { callId, scheduler: time }).subscribe({ error: () => undefined }),
    );
    const seen: unknown[] = [];
    timer(200, time).subscribe(() => {
      seen.push(session.queue.calls.length, session.queue.clear(), session.queue.calls.length);
      seen.push(session.queue.clear());
    });
    timer(400, time).subscribe(() => left.forEach((call) => call.unsubscribe()));
    time.flush();
    expect(seen).toEqual([1, 1, 0, 0]);
  });

  it('S3: a step layer that cuts by a time-out does not interrupt a call that waits', () => {
    const time = new VirtualTimeScheduler();
    const impatient: Layer = {
      name: 'impatient',
      step: () => (next) => (step) => {
        const { cut } = step;
        return step.kind !== 'wait' || cut === undefined
          ? next(step)
          : next(step).pipe(
              timeout({ first: 1, scheduler: time, with: () => cut({ reason: 'timeout' }) }),
            );
      },
    };
    const wait = tool({
      name: 'wait',
      description: 'Waits.',
      run: () => of('Done.').pipe(delay(20, time)),
    });
    const model = scriptedModel([toolCall('wait')], [text('One.')], [text('Two.')]);
    const agent = createAgent({ model, tools: [wait], use: [impatient] });
    const session = sessions(agent, { onBusy: 'queue' }).open('s');
    const said: string[] = [];
    merge(...['1', '2'].map((asked) => session.call$(asked, { scheduler: time }))).subscribe(
      (reply) => said.push(textOf(reply)),
    );
    time.flush();
    expect(said).toEqual(['One.', 'Two.']);
  });

  it('S6: a call that has ended takes no place when it is resumed', () => {
    const time = new VirtualTimeScheduler();
    const durable = journal(slowJournal(time, 10));
    const agent = createAgent({
      model: scriptedModel([text('One.')], [text('Two.')]),
      use: [durable],
    });
    const session = sessions(agent).open('s');
    const ends: string[] = [];
    const end = (name: string) => ({
      next: ({ reason }: { readonly reason: string }) => void ends.push(`${name} ${reason}`),
      error: (error: unknown) => void ends.push(`${name} ${String(error)}`),
    });
    session.call$('1', { callId: 'a', scheduler: time }).subscribe(end('a'));
    time.flush();
    durable.resume$(session, 'a', { scheduler: time }).subscribe(end('again'));
    session.call$('2', { scheduler: time }).subscribe(end('b'));
    time.flush();
    expect([...ends].sort()).toEqual(['a answer', 'again answer', 'b answer']);
  });

  it('S3, S6: a call that is refused leaves no record, however soon its journal opens', () => {
    const time = new VirtualTimeScheduler();
    const driver = inProcessCalls();
    const durable = journal(
      createCallStore({
        ...driver,
        claim$: (callId) =>
          timer(callId === 'a' ? 30 : 0, time).pipe(concatMap(() => driver.claim$(callId))),
      }),
    );
    const session = sessions(createAgent({ model: scriptedModel(NEVER), use: [durable] })).open(
      's',
    );
    const failed: unknown[] = [];
    const left = ['a', 'b'].map((callId) =>
      session.call$('?', { callId, scheduler: time }).subscribe({
        error: (error: unknown) => failed.push(Reflect.get(Object(error), 'code')),
      }),
    );
    // Before the time of a call is up.
    time.maxFrames = 60_000;
    time.flush();
    const ids: string[] = [];
    calls$({ driver }).subscribe(({ callId }) => ids.push(callId));
    expect([failed, ids]).toEqual([['busy'], ['a']]);
    left.forEach((call) => call.unsubscribe());
  });

  it('S3, C6: a call has its place until its outermost layer is done', () => {
    const time = new VirtualTimeScheduler();
    const slow: Layer = {
      name: 'slow',
      priority: 1,
      call: () => (next) => (call) => next(call).pipe(delay(30, time)),
    };
    const model = scriptedModel([text('One.')], [text('Two.')]);
    const session = sessions(createAgent({ model, use: [slow] }), { onBusy: 'queue' }).open('s');
    const types: string[] = [];
    session.events$.subscribe(({ type, callId }) => types.push(`${type} ${callId}`));
    session.call$('1', { callId: 'a' }).subscribe();
    timer(10, time).subscribe(() => session.call$('2', { callId: 'b' }).subscribe());
    time.flush();
    const ends = types.filter((it) => /^(?:preCall|postCall)/.test(it));
    expect(ends).toEqual(['preCall a', 'postCall a', 'preCall b', 'postCall b']);
  });

  it('S3, C6: a layer that calls the session of its own call hears that it is busy', async () => {
    const model = scriptedModel([text('One.')]);
    const again: Layer = {
      name: 'again',
      priority: 1,
      call: () => (next) => (call) =>
        session.call$('inner').pipe(
          map(textOf),
          concatMap(() => next(call)),
        ),
    };
    const agent = createAgent({ model });
    const session = sessions(agent).open('s');
    await expect(session.call('outer', { use: [again] })).rejects.toMatchObject({ code: 'busy' });
  });

  it('S6: a resumed call asks for the context of its own, also where its session has one', async () => {
    const [mine, own] = [contextKey<string>('mine'), contextKey<string>('own')];
    const durable = journal(createCallStore(inProcessCalls()));
    const agent = createAgent({ model: scriptedModel([text('Done.')]), use: [durable] });
    const session = sessions(agent).open('s', { context: [mine.of('session')] });
    const begun$ = session.stream$('?', { callId: 'a', context: [own.of('call')] });
    await firstValueFrom(begun$);
    await expect(durable.resume(session, 'a')).rejects.toMatchObject({ code: 'invalidResume' });
    expect(textOf(await durable.resume(session, 'a', { context: [own.of('call')] }))).toBe('Done.');
  });

  it('S3: the time-out that an agent sets holds for a call that steers', () => {
    const time = new VirtualTimeScheduler();
    const agent = createAgent({
      model: scriptedModel(NEVER),
      limits: { timeouts: { callMs: 60 } },
    });
    const session = sessions(agent).open('s');
    const codes: unknown[] = [];
    const first = session
      .call$('1', { scheduler: time, limits: { timeouts: { callMs: 2_000 } } })
      .subscribe();
    session.call$('2', { onBusy: 'steer', scheduler: time }).subscribe({
      error: (error: unknown) => codes.push(Reflect.get(Object(error), 'code')),
    });
    time.maxFrames = 100;
    time.flush();
    expect(codes).toEqual(['timeout']);
    first.unsubscribe();
  });

  it('S4: opening a session twice loads it once', async () => {
    const store = inProcessSessions();
    let loads = 0;
    const counted = {
      ...store,
      load$: (id: string) => {
        loads += 1;
        return store.load$(id);
      },
    };
    const kept = keepSessions(
      createAgent({ model: scriptedModel([text('a')], [text('b')]) }),
      counted,
    );
    const [one, other] = [await kept.open('s'), await kept.open('s')];
    await one.call('1');
    expect(other.version).toBe(1);
    await other.call('2');
    expect([one.version, loads]).toEqual([2, 1]);
  });

  it('Y3: an error of the agent is not blamed on a layer', async () => {
    const agent = createAgent({
      model: scriptedModel([text('a')]),
      instructions: () => {
        throw new Error('boom');
      },
    });
    const failed = record(sessions(agent).open('s').stream$('?'));
    await expect(failed).rejects.toThrow('The call failed: boom');
  });
});
