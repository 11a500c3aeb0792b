import { describe, expect, it } from '@jest/globals';
import {
  catchError,
  concatMap,
  lastValueFrom,
  type MonoTypeOperatorFunction,
  of,
  tap,
  toArray,
} from 'rxjs';
import { type Agent, createAgent, type Layer, type MillraceError } from '../index.js';
import { sessions } from '../layers/sessions/index.js';
import { agentTool } from '../layers/teams/index.js';
import { marbles, scriptedModel, text, toolCall } from '../testing/index.js';
import { sequential } from './compose.js';
import { wrapAgent } from './wrap-agent.js';

const agentOf = (...answers: readonly string[]): Agent =>
  createAgent({ name: 'inner', model: scriptedModel(...answers.map((it) => [text(it)])) });

/** Adds a layer that notes the calls, while it is on. */
const switched = () => {
  const noted: string[] = [];
  const state = { isOn: true };
  const noting: Layer = {
    name: 'noting',
    record: ({ info: call }) => tap({ subscribe: () => noted.push(call.agent.join('/')) }),
  };
  const wrap = (agent: Agent): Agent =>
    wrapAgent(agent, (own, options) => [state.isOn ? own.with(noting) : own, options]);
  return { noted, state, wrap };
};

describe('wrapAgent', () => {
  it('decides at the start of each call, for every view', async () => {
    const { noted, state, wrap } = switched();
    const agent = wrap(agentOf('1', '2', '3', '4', '5'));
    const call$ = agent.call$('a');
    const stream$ = agent.stream$('b');
    expect(noted).toEqual([]);
    expect((await lastValueFrom(call$)).text).toBe('1');
    expect((await lastValueFrom(stream$)).type).toBe('postCall');
    expect(noted).toHaveLength(2);
    state.isOn = false;
    expect((await agent.call('c')).text).toBe('3');
    state.isOn = true;
    for await (const event of agent.stream('d')) expect(event.agent).toEqual(['inner']);
    expect(noted).toHaveLength(3);
  });

  it('keeps name, tools and events$, and the layers that with() adds', async () => {
    const { noted, wrap } = switched();
    const inner = agentOf('1', '{"n":2}');
    const agent = wrap(inner);
    const seen: string[] = [];
    const subscription = agent.events$.subscribe(({ type }) => seen.push(type));
    expect(agent).toMatchObject({ name: 'inner', tools: [], limits: inner.limits });
    await agent.call('a');
    const typed = agent.with({
      name: 'own',
      priority: 1,
      record: () => tap(() => noted.push('own')),
    });
    await typed.call('b');
    subscription.unsubscribe();
    expect(noted).toEqual(['inner', 'inner', 'own']);
    expect(seen.filter((type) => type === 'postCall')).toHaveLength(2);
  });

  it('gives other options', () => {
    marbles(({ expectObservable, model, scheduler }) => {
      const slow = createAgent({ model: model('5s (tf|)') });
      const agent = wrapAgent(slow, (own, options) => [own, { scheduler, ...options }]);
      const code$ = agent
        .call$('a', { limits: { timeouts: { callMs: 2_000 } } })
        .pipe(catchError(({ code }: MillraceError) => of(code)));
      expectObservable(code$).toBe('2s (c|)', { c: 'timeout' });
    });
  });

  it('works as a sub-agent, a step, an operator and in a session', async () => {
    const { noted, wrap } = switched();
    const agent = wrap(agentOf('1', '2', '3', '4', '5'));
    const model = scriptedModel(
      [toolCall('inner', { reasoning: 'x', user_prompt: 'x' })],
      [text('Done.')],
    );
    const above = createAgent({
      name: 'outer',
      model,
      tools: [agentTool(agent, { description: 'Asks.' })],
    });
    await above.call('a');
    const { length } = noted;
    expect(noted).toEqual(['outer/inner']);
    const inOrder: MonoTypeOperatorFunction<string> = concatMap((it) => of(it));
    const replies$ = of('b').pipe(inOrder, sequential(agent.asOperator(), agent.asOperator()));
    expect(await lastValueFrom(replies$.pipe(toArray()))).toHaveLength(1);
    await sessions(agent).open('s').call('c');
    await lastValueFrom(of('d').pipe(agent.asOperator({ flatten: concatMap })));
    expect(noted).toHaveLength(length + 4);
  });

  it('passes an error of the choice to the call', async () => {
    const agent = wrapAgent(agentOf('1'), () => {
      throw new Error('No choice.');
    });
    await expect(agent.call('a')).rejects.toThrow('No choice.');
  });
});
