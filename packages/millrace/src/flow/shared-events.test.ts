import { describe, expect, it } from '@jest/globals';
import { config, filter, firstValueFrom, map, share, tap } from 'rxjs';
import { type Agent, type AgentEvent, createAgent, isEvent } from '../index.js';
import { sessions } from '../layers/sessions/index.js';
import { record, scriptedModel, text } from '../testing/index.js';

describe('I17: a subscriber of events$ that throws', () => {
  const fail = (): never => {
    throw new Error('bad handler');
  };
  type Subscribe = (agent: Agent, fails: (event: AgentEvent) => void) => unknown;
  it.each<[what: string, subscribe: Subscribe]>([
    ['a function', ({ events$ }, fails) => events$.subscribe(fails)],
    ['an observer', ({ events$ }, fails) => events$.subscribe({ next: fails })],
    [
      'an object with its own methods',
      ({ events$ }, fails) => {
        class Own {
          next(event: AgentEvent): void {
            this.pass(event);
          }
          pass = fails;
        }
        return events$.subscribe(new Own());
      },
    ],
    [
      'an async function',
      ({ events$ }, fails) =>
        events$.subscribe((async (event: AgentEvent) => fails(event)) as never),
    ],
    ['an operator', ({ events$ }, fails) => events$.pipe(map(fails)).subscribe()],
    [
      'a handler behind operators',
      ({ events$ }, fails) => events$.pipe(filter(Boolean), tap(), share()).subscribe(fails),
    ],
    [
      'the handler of its error',
      ({ events$ }, fails) => events$.pipe(map(fails)).subscribe({ error: fail }),
    ],
    ['one of a session', (agent, fails) => sessions(agent).open('s').events$.subscribe(fails)],
    ['one of an agent with layers', (agent, fails) => agent.with().events$.subscribe(fails)],
  ])('%s, is reported once and dropped', async (_what, subscribe) => {
    const unhandled: unknown[] = [];
    config.onUnhandledError = (cause) => unhandled.push(cause);
    const rejected = (cause: unknown) => unhandled.push(cause);
    process.on('unhandledRejection', rejected);
    for (const at of ['preCall', 'preReasoning', 'postCall']) {
      const model = scriptedModel([text('a')], [text('b')]);
      const agent = createAgent({ model });
      let calls = 0;
      subscribe(agent, ({ type }) => {
        if (type !== at) return;
        calls += 1;
        fail();
      });
      const seen: AgentEvent[] = [];
      agent.events$.subscribe((event) => seen.push(event));
      const call = () => sessions(agent).open('s').call('?');
      const events = await record(agent.stream$('?'));
      await call();
      await new Promise(setImmediate);
      const reported = seen.filter((event) => isEvent(event, 'handlerError'));
      expect(reported).toMatchObject([
        { of: 'events$', error: { message: expect.stringContaining('bad handler') } },
      ]);
      expect(calls).toBe(1);
      expect(seen.filter(({ type }) => type === 'postCall')).toHaveLength(2);
      // The stream of a call ends with its last event.
      expect(events.at(-1)?.type).toBe('postCall');
      const numbers = seen.map(({ callId, seq }) => `${callId} ${seq}`);
      expect(new Set(numbers).size).toBe(numbers.length);
    }
    process.off('unhandledRejection', rejected);
    config.onUnhandledError = null;
    expect(unhandled).toEqual([]);
  });

  it('as a Promise, rejects the Promise', async () => {
    const agent = createAgent({ model: scriptedModel([text('a')]) });
    const first = firstValueFrom(agent.events$.pipe(map(fail)));
    const each = agent.events$.forEach(fail);
    await agent.call('?');
    await expect(first).rejects.toThrow('bad handler');
    await expect(each).rejects.toThrow('bad handler');
  });
});

it('I17: an own subscriber of a stream that throws is reported as RxJS does, and the call continues', async () => {
  const unhandled = new Promise((resolve) => {
    config.onUnhandledError = resolve;
  });
  const agent = createAgent({ model: scriptedModel([text('a')]) });
  let ended = false;
  agent.stream$('?').subscribe({
    next: ({ type }) => {
      if (type === 'preCall') throw new Error('bad handler');
    },
    complete: () => (ended = true),
  });
  expect(await unhandled).toMatchObject({ message: 'bad handler' });
  expect(ended).toBe(true);
  config.onUnhandledError = null;
});
