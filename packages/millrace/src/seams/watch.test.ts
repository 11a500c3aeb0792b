import { describe, expect, it } from '@jest/globals';
import { createAgent } from '../agent.js';
import { watch } from './interceptor.js';
import { record, scriptedModel, text, toolCall } from '../testing/index.js';
import { tool } from '../tools/tool.js';

describe('watch', () => {
  it('H4: a handler sees every event, as subscribers do', async () => {
    const seen: unknown[] = [];
    const agent = createAgent({
      model: scriptedModel([text('Hi.')]),
      use: [watch((event, call) => seen.push([event, call.callId]))],
    });
    const events = await record(agent.stream$('?', { callId: 'c' }));
    expect(seen).toEqual(events.map((event) => [event, 'c']));
  });

  it('I17: what a handler throws is an event, and harms no other', async () => {
    const agent = createAgent({
      model: scriptedModel([text('Hi.')]),
      use: [
        watch(
          ({ type }) => {
            if (type !== 'reasoningChunk') throw new Error(`Not ${type}`);
          },
          { name: 'grumpy' },
        ),
      ],
    });
    const events = await record(agent.stream$('?'));
    const errors = events.filter((event) => event.type === 'handlerError');
    expect(errors.map(({ of, name, error }) => [of, name, error.code])).toEqual([
      ['preCall', 'grumpy', 'unknown'],
      ['preReasoning', 'grumpy', 'unknown'],
      ['postReasoning', 'grumpy', 'unknown'],
    ]);
    expect(events.at(-1)?.type).toBe('postCall');
  });

  it('I17: so is what a handler rejects with', async () => {
    const agent = createAgent({
      model: scriptedModel([toolCall('wait')], [text('Done.')]),
      tools: [tool({ name: 'wait', description: 'Waits.', run: () => Promise.resolve('ok') })],
      use: [
        watch(({ type }) => (type === 'preCall' ? Promise.reject(new Error('Late')) : undefined)),
      ],
    });
    const events = await record(agent.stream$('?'));
    expect(events.filter(({ type }) => type === 'handlerError')).toMatchObject([
      {
        of: 'preCall',
        name: 'watch() at position 1',
        error: { message: expect.stringMatching(/Late/) },
      },
    ]);
  });

  it('H1: does not descend to sub-agents', async () => {
    const seen: string[] = [];
    const inner = createAgent({ name: 'inner', model: scriptedModel([text('In.')]) });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_, context) => inner.call$('?', { parent: context }),
    });
    const outer = createAgent({
      model: scriptedModel([toolCall('ask')], [text('Out.')]),
      tools: [ask],
      use: [watch(({ agent }) => seen.push(agent.join('/')))],
    });
    await outer.call('?');
    expect(new Set(seen)).toEqual(new Set(['agent']));
  });

  it('is refused if it is not a function', () => {
    expect(() => watch('log' as never)).toThrow(/watch\(\) takes a function/);
    expect(() => createAgent({ model: scriptedModel(), use: [{} as never] })).toThrow(
      /interceptors, such as on\(type, operator\)/,
    );
  });
});
