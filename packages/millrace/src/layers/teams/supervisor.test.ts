import { describe, expect, it } from '@jest/globals';
import { map } from 'rxjs';
import { createAgent, textOf, tool, selectTools } from '../../index.js';
import { marbles, record, scriptedModel, text, toolCall } from '../../testing/index.js';
import { supervisor } from './index.js';

const worker = (name: string, says: string, description = `Is ${name}.`) => ({
  agent: createAgent({ name, model: scriptedModel([text(says)]) }),
  description,
});

describe('supervisor', () => {
  it('G5: asks its agents, and answers from what they say', async () => {
    const model = scriptedModel(
      [
        toolCall('researcher', { user_prompt: 'Find.' }),
        toolCall('writer', { user_prompt: 'Write.' }),
      ],
      [text('All done.')],
    );
    const lead = supervisor({
      model,
      instructions: 'You are kind.',
      agents: [worker('researcher', 'facts'), worker('writer', 'prose', 'Writes\nwell.')],
    });
    const events = await record(lead.stream$('?'));
    expect(model.requests[0]?.system).toMatch(
      /^You are kind\.\n\n\[Team\]\nYou lead a team of agents/,
    );
    expect(model.requests[0]?.system).toMatch(
      /\n- researcher: Is researcher\.\n- writer: Writes well\.$/,
    );
    expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
      { content: [text('facts')] },
      { content: [text('prose')] },
    ]);
    const last = events.at(-1);
    expect(last?.type === 'postCall' && textOf(last.reply)).toBe('All done.');
    expect(new Set(events.map(({ agent }) => agent.join('/')))).toEqual(
      new Set(['supervisor', 'supervisor/researcher', 'supervisor/writer']),
    );
  });

  it('T3: asks them at the same time', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const slow = [model('---(tf|)'), model('---(tf|)')] as const;
      const lead = supervisor({
        model: scriptedModel(
          [toolCall('a', { user_prompt: '?' }), toolCall('b', { user_prompt: '?' })],
          [text('done')],
        ),
        agents: slow.map((it, index) => ({
          agent: createAgent({ name: 'ab'.charAt(index), model: it }),
          description: 'Slow.',
        })),
      });
      expectObservable(lead.call$('?', { scheduler }).pipe(map(textOf))).toBe('---(d|)', {
        d: 'done',
      });
      for (const { subscriptions } of slow) {
        expectSubscriptions(subscriptions[0] ?? []).toBe('^--!');
      }
    });
  });

  it('X14: names are made fit and unique, also among its other tools', async () => {
    const model = scriptedModel([text('done')]);
    const lead = supervisor({
      model,
      tools: [tool({ name: 'clock', description: 'Tells.', run: () => 'noon' })],
      agents: [
        worker('a b', ''),
        worker('a/b', ''),
        worker('clock', ''),
        worker('__proto__', ''),
        { ...worker('x', ''), name: 'named' },
      ],
      instructions: ({ agent }) => `You are ${agent.join()}.`,
      name: 'boss',
    });
    await lead.call('?');
    expect(model.requests[0]?.tools?.map(({ name }) => name)).toEqual([
      'clock',
      'a_b',
      'a_b_2',
      'clock_2',
      'proto',
      'named',
    ]);
    expect(model.requests[0]?.system).toMatch(/^You are boss\.\n\n\[Team\]/);
  });

  it('T11: its agents are shown no matter what is selected among its other tools', async () => {
    const clock = tool({ name: 'clock', description: 'Tells.', run: () => 'noon' });
    const model = scriptedModel([text('done')], [text('done')]);
    const lead = supervisor({
      model,
      tools: [clock],
      agents: [worker('a', '')],
      use: [selectTools({ select: () => ['clock'] })],
    });
    await lead.call('?');
    const other = supervisor({ model, agents: [worker('a', '')], tools: [clock] });
    await other.call('?');
    expect(model.requests.map(({ tools = [] }) => tools.map(({ name }) => name))).toEqual([
      ['clock', 'a'],
      ['clock', 'a'],
    ]);
  });

  it('refuses no agents', () => {
    expect(() => supervisor({ model: scriptedModel(), agents: [] })).toThrow(
      "'agents' must be a list",
    );
    expect(() => supervisor({ model: scriptedModel(), agents: [{ agent: 'x' } as never] })).toThrow(
      "'agents' must be a list",
    );
    expect(() => supervisor({ model: scriptedModel() } as never)).toThrow("needs 'agents'");
  });
});
