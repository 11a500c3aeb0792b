import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, map, toArray } from 'rxjs';
import { createAgent, textOf, tool } from '../index.js';
import { marbles, scriptedModel, text as says, thinking, toolUse } from '../testing/index.js';
import { delta, postCall } from './events.test-support.js';
import { text } from './event-operators.js';

describe('text', () => {
  it('H1: emits the text deltas of root calls, and of sub-agents where they are wanted', () => {
    const events = {
      a: delta('a'),
      t: delta('t', { kind: 'thinking' }),
      i: delta('i', { kind: 'toolInput', toolUse: { index: 0, id: 'u', name: 'n' } }),
      s: delta('s', { root: 'c', call: 'c/1' }),
      z: delta('z', { type: 'summaryChunk' }),
      p: postCall('p'),
    };
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const event$ = cold('a-tis-zp|', events);
      expectObservable(event$.pipe(text())).toBe('a-----z-|');
      expectObservable(event$.pipe(text({ subAgents: true }))).toBe('a---s-z-|');
      expectSubscriptions(event$.subscriptions).toBe(['^-------!', '^-------!', '^--!']);
      const failing$ = cold('a#', events);
      expectObservable(failing$.pipe(text())).toBe('a#');
      expectObservable(event$.pipe(text()), '^--!').toBe('a---');
    });
  });

  it('H1, I9: joined, it is what the reply says', async () => {
    const helper = createAgent({ name: 'helper', model: scriptedModel([says('Aside.')]) });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_input, parent) => helper.call$('?', { parent }).pipe(map(textOf)),
    });
    const agent = createAgent({
      model: scriptedModel([toolUse('ask')], [thinking('Hm.'), says('It '), says('is.')]),
      tools: [ask],
    });
    expect(await firstValueFrom(agent.stream$('?').pipe(text(), toArray()))).toEqual([
      'It ',
      'is.',
    ]);
  });

  it('refuses options that there are none of', () => {
    expect(() => text({ all: true } as never)).toThrow("text() has no option 'all'.");
    expect(() => text({ subAgents: 1 } as never)).toThrow(
      "text(): 'subAgents' must be true or false",
    );
  });
});
