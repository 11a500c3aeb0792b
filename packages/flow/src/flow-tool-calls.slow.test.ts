import { describe, expect, it } from '@jest/globals';
import { type Model, type Reply, tool } from 'millrace';
import { finish, text, toolCall } from 'millrace/testing';
import fc from 'fast-check';
import { from, map, timer, VirtualTimeScheduler } from 'rxjs';
import { flowAgent } from './flow-agent.js';

const component = (component_name: string, params: object, ...upstream: readonly string[]) => ({
  component_name,
  params,
  ...(upstream.length > 0 && { upstream }),
});

/** Calls its tool once. */
const model: Model = {
  name: 'worker',
  stream$: ({ messages }) =>
    from([messages.at(-1)?.role === 'tool' ? text('Done.') : toolCall('work'), finish()]),
};

const works = (content: string, ...upstream: readonly string[]) =>
  component(
    'agent',
    { llm_id: 'm', tools: ['work'], prompts: [{ role: 'user', content }] },
    ...upstream,
  );

const documents: Readonly<Record<string, readonly [components: object, calls: readonly string[]]>> =
  {
    'parallel branches': [
      {
        begin: { component_name: 'begin', downstream: ['a', 'b'] },
        a: works('a'),
        b: works('b'),
        a2: works('{{a@output}}', 'a'),
        b2: works('{{b@output}}', 'b'),
        m: component('message', { content: '{{a2@output}}{{b2@output}}' }, 'a2', 'b2'),
      },
      ['a', 'b', 'a2', 'b2'],
    ],
    'items at the same time': [
      {
        begin: { component_name: 'begin', downstream: ['i'] },
        i: component('iterate', {
          items: '["1", "2"]',
          concurrency: 2,
          components: {
            each: { component_name: 'begin', downstream: ['x'] },
            x: works('{{i@item}}'),
            y: works('{{x@output}}', 'x'),
            said: component('message', { content: '{{y@output}}' }, 'y'),
          },
        }),
        m: component('message', { content: '{{i@output}}' }, 'i'),
      },
      ['x', 'y', 'x', 'y'],
    ],
  };

describe('the tool calls of a flow', () => {
  it.each(Object.entries(documents))(
    'G5, S7: %s have them in the order of the graph, no matter what their tools take',
    (_, [components, calls]) => {
      fc.assert(
        fc.property(
          fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 4, maxLength: 4 }),
          (delays) => {
            const scheduler = new VirtualTimeScheduler();
            const inOrder: string[] = [];
            const work = tool({
              name: 'work',
              description: 'Works.',
              run: (_input, { agent }) =>
                timer(delays[inOrder.push(agent.at(-1) ?? '') - 1] ?? 0, scheduler).pipe(
                  map(() => 'worked'),
                ),
            });
            const flow = flowAgent(
              { version: 1, name: 'f', components },
              { models: { m: model }, tools: [work] },
            );
            const replies: Reply[] = [];
            flow.call$('?', { scheduler }).subscribe((reply) => replies.push(reply));
            scheduler.flush();
            expect(replies[0]?.toolCalls.map(({ agent }) => agent)).toEqual(calls);
            expect(inOrder.toSorted()).toEqual(calls.toSorted());
          },
        ),
        { numRuns: 60 },
      );
    },
  );
});
