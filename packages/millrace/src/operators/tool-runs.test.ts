import { describe, expect, it } from '@jest/globals';
import { filter, firstValueFrom, map, toArray } from 'rxjs';
import { createAgent, on, textOf, tool } from '../index.js';
import { marbles, scriptedModel, text, toolCall } from '../testing/index.js';
import { toolRuns } from './event-operators.js';

describe('toolRuns', () => {
  it('reports each run as the reply does: those that work, fail, are refused and unknown', async () => {
    const say = tool({ name: 'say', description: 'Says.', run: () => 'said' });
    const fail = tool({
      name: 'fail',
      description: 'Fails.',
      run: () => {
        throw new Error('no');
      },
    });
    const model = () =>
      scriptedModel(
        [toolCall('say', { a: 1 }), toolCall('fail'), toolCall('deny'), toolCall('none')],
        [text('Done.')],
      );
    const deny = tool({ name: 'deny', description: 'Is denied.', run: () => '' });
    const agent = createAgent({
      model: model(),
      tools: [say, fail, deny],
      use: [
        on(
          'preActing',
          filter(({ toolCall: { name } }) => name !== 'deny'),
        ),
      ],
    });
    const runs: unknown[] = [];
    agent.events$.pipe(toolRuns()).subscribe((run) => runs.push(run));
    const { toolCalls } = await agent.call('?');
    expect(runs).toHaveLength(4);
    expect(runs).toEqual(expect.arrayContaining([...toolCalls]));
    expect(runs).toContainEqual({
      toolCallId: 'call_1_0',
      name: 'say',
      input: { a: 1 },
      output: 'said',
      isError: false,
      ms: expect.any(Number),
    });
  });

  it('H1: leaves out what sub-agents do, unless it is wanted', async () => {
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'a fjord' });
    const agent = () => {
      const helper = createAgent({
        name: 'helper',
        model: scriptedModel([toolCall('look')], [text('A fjord.')]),
        tools: [look],
      });
      const ask = tool({
        name: 'ask',
        description: 'Asks.',
        run: (_input, parent) => helper.call$('?', { parent }).pipe(map(textOf)),
      });
      return createAgent({ model: scriptedModel([toolCall('ask')], [text('So.')]), tools: [ask] });
    };
    const names = (options?: { readonly subAgents: boolean }) =>
      firstValueFrom(
        agent()
          .stream$('?')
          .pipe(
            toolRuns(options),
            map(({ name }) => name),
            toArray(),
          ),
      );
    expect(await names()).toEqual(['ask']);
    expect(await names({ subAgents: true })).toEqual(['look', 'ask']);
  });

  it('emits a run when its result is there, and ends as the events do', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const slow = tool({
        name: 'tool',
        description: 'Waits.',
        run: () => 'ok',
      });
      const answers = model(['--(cf|)', '--(tf|)']);
      const run$ = createAgent({ model: answers, tools: [slow] })
        .stream$('?', { scheduler })
        .pipe(
          toolRuns(),
          map(({ output }) => output),
        );
      expectObservable(run$).toBe('--o-|', { o: 'ok' });
      expectSubscriptions(answers.subscriptions[1] ?? []).toBe('--^-!');
    });
  });
});
