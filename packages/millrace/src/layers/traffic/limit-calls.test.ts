import { describe, expect, it } from '@jest/globals';
import {
  catchError,
  delay,
  finalize,
  firstValueFrom,
  from,
  map,
  NEVER,
  of,
  throwError,
  timer,
} from 'rxjs';
import {
  type Agent,
  createAgent,
  interruptOn,
  type Layer,
  type MillraceError,
  only,
  textOf,
  tool,
} from '../../index.js';
import { marbles, scriptedModel, text, toolCall } from '../../testing/index.js';
import { createSemaphore, limitCalls, limitConcurrency, limitRate } from './index.js';

describe('limitCalls', () => {
  it('C6: no more calls than that at the same time, in turn, and the wait counts', () => {
    marbles(({ scheduler, expectObservable }) => {
      const semaphore = createSemaphore({ max: 2 });
      const slow = {
        name: 'm',
        stream$: () =>
          from([text('1'), { type: 'finish', finish: 'stop' } as const]).pipe(delay(10, scheduler)),
      };
      const use = [limitCalls(semaphore)];
      const agent = createAgent({ model: slow, use });
      let most = 0;
      const call$ = (timeoutMs?: number) =>
        agent
          .stream$('?', {
            scheduler,
            ...(timeoutMs && { limits: { timeouts: { callMs: timeoutMs } } }),
          })
          .pipe(
            only('preReasoning'),
            map(() => (most = Math.max(most, semaphore.held))),
          );
      expectObservable(call$()).toBe('a 9ms |', { a: 1 });
      expectObservable(call$()).toBe('a 9ms |', { a: 2 });
      expectObservable(call$()).toBe('10ms a 9ms |', { a: 2 });
      const code$ = call$(5).pipe(
        catchError((error: unknown) => of((error as MillraceError).code)),
      );
      expectObservable(code$).toBe('5ms (t|)', { t: 'timeout' });
      expectObservable(timer(30, scheduler).pipe(map(() => semaphore.held))).toBe('30ms (h|)', {
        h: 0,
      });
    });
  });

  it('C6, G4: a sub-agent shares the place of its parent; one that leaves frees it', async () => {
    const semaphore = createSemaphore({ max: 1 });
    const use = [limitCalls(semaphore)];
    const child = createAgent({ name: 'child', model: scriptedModel([text('inner')]), use });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_, context) => child.call$('?', { parent: context }).pipe(map(textOf)),
    });
    const parent = createAgent({
      model: scriptedModel([toolCall('ask')], [text('outer')]),
      tools: [ask],
      use,
    });
    expect(textOf(await parent.call('?'))).toBe('outer');
    expect(semaphore.held).toBe(0);
    const stuck = createAgent({ model: { name: 'm', stream$: () => NEVER }, use });
    const left = stuck
      .call$('?')
      .pipe(finalize(() => undefined))
      .subscribe({ error: () => undefined });
    expect(semaphore.held).toBe(1);
    left.unsubscribe();
    expect(semaphore.held).toBe(0);
  });

  it('C6: a wait is reported: for calls, and for requests to models', async () => {
    const semaphore = createSemaphore({ max: 1 });
    const limited = limitConcurrency(1);
    const rated = limitRate({ requestsPerMinute: 1 });
    const stuck = { name: 'm', stream$: () => NEVER };
    const queuedIn = (agent: Agent) => firstValueFrom(agent.stream$('?').pipe(only('queued')));
    const use = [limitCalls(semaphore)];
    const agents = [
      createAgent({ model: stuck, use }),
      createAgent({ model: limited(stuck) }),
      createAgent({ model: rated(stuck) }),
    ];
    const held = agents.map((agent) => agent.call$('?').subscribe({ error: () => undefined }));
    expect(await Promise.all(agents.map(queuedIn))).toMatchObject([
      { why: 'calls', ahead: 0, iteration: 0 },
      { why: 'concurrency', ahead: 0, iteration: 1 },
      { why: 'rate', ahead: 0, iteration: 1 },
    ]);
    held.forEach((call) => call.unsubscribe());
    expect([semaphore.held, semaphore.waiting, limited.semaphore.waiting]).toEqual([0, 0, 0]);
  });

  it('C6: an interrupt ends a call that waits', () => {
    marbles(({ scheduler, cold, expectObservable }) => {
      const semaphore = createSemaphore({ max: 1 });
      const use = [limitCalls(semaphore)];
      const stuck = createAgent({ model: { name: 'm', stream$: () => NEVER }, use });
      const holder = stuck.call$('?', { scheduler });
      expectObservable(holder, '9ms !').toBe('-');
      const waiting$ = stuck
        .call$('?', { scheduler, use: [interruptOn(cold('---i', { i: {} }))] })
        .pipe(map(({ reason }) => reason));
      expectObservable(waiting$).toBe('---(r|)', { r: 'interrupted' });
      expectObservable(timer(4, scheduler).pipe(map(() => semaphore.waiting)), '9ms !').toBe(
        '----(w|)',
        { w: 0 },
      );
    });
  });

  it('Y3: a layer of steps that fails its wait fails the call, which leaves no place taken', async () => {
    const semaphore = createSemaphore({ max: 1 });
    const failing: Layer = {
      name: 'failing',
      step: () => (next) => (step) =>
        step.kind === 'wait' ? throwError(() => new Error('no waits')) : next(step),
    };
    const model = scriptedModel([text('x')]);
    const agent = createAgent({ model, use: [limitCalls(semaphore), failing] });
    await expect(agent.call('?')).rejects.toThrow('no waits');
    expect([semaphore.held, semaphore.waiting]).toEqual([0, 0]);
  });
});
