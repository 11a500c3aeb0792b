import { describe, expect, it } from '@jest/globals';
import {
  asapScheduler,
  concat,
  concatMap,
  delay,
  firstValueFrom,
  lastValueFrom,
  map,
  NEVER,
  of,
  race,
  type SchedulerLike,
  timer,
} from 'rxjs';
import {
  createAgent,
  history,
  type Layer,
  type MemoryFactory,
  inProcessMemory,
  type Model,
  textOf,
  tool,
} from '../index.js';
import { inProcessSessions, keepSessions, sessions } from '../layers/sessions/index.js';
import { agentTool } from '../layers/teams/index.js';
import { finish, marbles, scriptedModel, text, toolCall } from '../testing/index.js';
import { createCallStore, fork$, inProcessCalls, type Journal, journal } from './index.js';

const durableOn = () => journal(createCallStore(inProcessCalls()));

/** Asks for a tool first, then answers; each message takes so many frames. */
const twoTurns = (name: string, frames: number, scheduler: SchedulerLike): Model => ({
  name: 'slow',
  stream$: ({ messages }) =>
    concat(
      of(messages.length === 1 ? toolCall(name) : text('Done.')).pipe(delay(frames, scheduler)),
      of(finish()),
    ),
});

const instant = tool({ name: 'instant', description: 'Takes no time.', run: () => 'ok' });

describe('a journal among other layers', () => {
  it('Y4, S6: records all of a call whose step an open has performed before', async () => {
    let paid = 0;
    const pay = tool({ name: 'pay', description: 'Pays.', run: () => `${(paid += 1)} paid.` });
    const gate: Layer = {
      name: 'gate',
      priority: 5,
      record: (context) => (call$) =>
        context
          .perform({ kind: 'gate', id: 'gate', input: undefined, run: () => of(true) })
          .pipe(concatMap(() => call$)),
    };
    const store = createCallStore(inProcessCalls());
    const agentOf = (durable: Journal, last: ReturnType<typeof text>[] | typeof NEVER) =>
      createAgent({
        model: scriptedModel(
          ...[1, 2].map(
            () =>
              ({ messages }: { messages: readonly unknown[] }) =>
                messages.length === 1 ? [toolCall('pay')] : last,
          ),
        ),
        tools: [pay],
        use: [durable, gate],
      });
    const left = agentOf(journal(store), NEVER).call$('?', { callId: 'c' }).subscribe();
    await new Promise((resolve) => setImmediate(resolve));
    left.unsubscribe();
    const again = journal(store);
    expect(textOf(await again.resume(agentOf(again, [text('Done.')]), 'c'))).toBe('Done.');
    expect(paid).toBe(1);
  });

  it('S8: a step that another layer has cut holds up no drain', () => {
    marbles(({ scheduler, expectObservable }) => {
      const durable = durableOn();
      const limit: Layer = {
        name: 'limit',
        priority: 20,
        step: () => (next) => (step) =>
          step.kind !== 'tool' || step.cut === undefined
            ? next(step)
            : race(
                next(step),
                timer(2, scheduler).pipe(
                  concatMap(() => step.cut?.({ reason: 'timeout', message: 'Late.' }) ?? NEVER),
                ),
              ),
      };
      const never = tool({ name: 'never', description: 'Never ends.', run: () => NEVER });
      const agent = createAgent({
        model: twoTurns('never', 5, scheduler),
        tools: [never],
        use: [durable, limit],
      });
      agent.call$('?', { callId: 'c', scheduler }).subscribe({ error: () => undefined });
      expectObservable(durable.drain$({ scheduler }), '---------^').toBe('------------(a|)', {
        a: { resumable: ['c'], lost: 0 },
      });
    });
  });

  it('S8: lets calls end their steps that run beside each other below one without a journal', () => {
    marbles(({ scheduler, expectObservable }) => {
      const durable = durableOn();
      const log: string[] = [];
      const pay = tool({
        name: 'pay',
        description: 'Pays.',
        run: () => timer(20, scheduler).pipe(map(() => (log.push('paid'), 'Paid.'))),
      });
      const below = (name: string, uses: string, frames: number) =>
        agentTool(
          createAgent({
            name,
            model: twoTurns(uses, frames, scheduler),
            tools: [pay, instant],
            use: [durable],
          }),
          { description: name },
        );
      const agent = createAgent({
        model: scriptedModel([
          toolCall('a', { user_prompt: '?' }, 'a'),
          toolCall('b', { user_prompt: '?' }, 'b'),
        ]),
        tools: [below('a', 'instant', 5), below('b', 'pay', 1)],
      });
      agent.call$('?', { callId: 'c', scheduler }).subscribe({ error: () => undefined });
      expectObservable(
        durable.drain$({ scheduler }).pipe(map(({ lost }) => [lost, ...log])),
        '---^',
      ).toBe('21ms (a|)', { a: [0, 'paid'] });
    });
  });

  it('S8: a refused call of the same id does not make the running one lost', async () => {
    const durable = durableOn();
    const agent = createAgent({ model: scriptedModel(NEVER), use: [durable] });
    const left = agent.call('?', { callId: 'c' }).catch(String);
    await expect(agent.call('?', { callId: 'c' })).rejects.toMatchObject({ code: 'conflict' });
    await expect(durable.resume(agent, 'c')).rejects.toMatchObject({ code: 'conflict' });
    const drained = await durable.drain({ timeoutMs: 0, scheduler: asapScheduler });
    expect(drained).toEqual({ resumable: ['c'], lost: 0 });
    await left;
  });

  it.each(['2', '1', 'open'])(
    'S7: a fork at %s of a call with a history continues in a session',
    async (at) => {
      const store = createCallStore(inProcessCalls());
      const durable = journal(store);
      const model = scriptedModel(
        ...Array.from({ length: 4 }, () => ({ messages }: { messages: readonly unknown[] }) => [
          messages.length === 2 ? toolCall('instant') : text('Done.'),
        ]),
      );
      const agent = createAgent({ model, tools: [instant], use: [durable] });
      const said = [{ role: 'assistant', content: [{ type: 'text', text: 'Yes.' }] }] as const;
      await agent.call('?', { callId: 'c', use: [history(said)] });
      const fork = await lastValueFrom(fork$(store, 'c', { at, sessionId: 's' }));
      const session = sessions(agent).open('s');
      expect((await durable.resume(session, fork)).reason).toBe('answer');
      expect(model.requests.at(-1)?.messages.map(textOf)[0]).toBe('Yes.');
    },
  );

  it('S4, S6: a kept session has one memory, however often it is resumed', async () => {
    const calls = createCallStore(inProcessCalls());
    const store = inProcessSessions();
    let made = 0;
    const memory: MemoryFactory = (id) => {
      made += 1;
      return inProcessMemory()(id);
    };
    const open = (model: Model) =>
      keepSessions(createAgent({ model }), store, { memory, journal: journal(calls) }).open('s');
    const first = await open(scriptedModel([text('First.')], NEVER));
    await first.call('One.');
    const left = first.call$('Two.', { callId: 'c' }).subscribe();
    await new Promise((resolve) => setImmediate(resolve));
    left.unsubscribe();
    made = 0;
    const second = await open(scriptedModel([text('Second.')]));
    await second.resume('c');
    expect(made).toBe(1);
    const kept = await firstValueFrom(second.memory.load$());
    expect(kept.map(textOf)).toEqual(['One.', 'First.', 'Two.', 'Second.']);
  });
});
