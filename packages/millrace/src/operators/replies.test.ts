import { describe, expect, it } from '@jest/globals';
import { map } from 'rxjs';
import { createAgent, textOf, tool } from '../index.js';
import { marbles, scriptedModel, text, toolCall } from '../testing/index.js';
import { delta, postCall } from './events.test-support.js';
import { replies } from './event-operators.js';

describe('replies', () => {
  it('H1: emits the reply of root calls, and of sub-agents if they are wanted', () => {
    const events = {
      d: delta('d'),
      s: postCall('sub', { root: 'c', call: 'c/1' }),
      r: postCall('root'),
    };
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const event$ = cold('d-s-r-|', events);
      expectObservable(event$.pipe(replies(), map(textOf))).toBe('----r-|', { r: 'root' });
      expectObservable(event$.pipe(replies({ subAgents: true }), map(textOf))).toBe('--s-r-|', {
        s: 'sub',
        r: 'root',
      });
      expectSubscriptions(event$.subscriptions).toBe(['^-----!', '^-----!']);
    });
  });

  it('hears the calls of an agent, also when one fails between them', async () => {
    const helper = createAgent({ name: 'helper', model: scriptedModel([text('Aside.')]) });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_input, parent) => helper.call$('?', { parent }).pipe(map(textOf)),
    });
    const agent = createAgent({
      model: scriptedModel([toolCall('ask')], [text('One.')], [], [], [text('Two.')]),
      tools: [ask],
    });
    const said: string[] = [];
    agent.events$
      .pipe(replies())
      .subscribe((reply) => said.push(`${textOf(reply)} ${reply.reason}`));
    await agent.call('?');
    await expect(agent.call('?')).rejects.toMatchObject({ code: 'emptyAnswer' });
    await agent.call('?');
    expect(said).toEqual(['One. answer', 'Two. answer']);
  });
});
