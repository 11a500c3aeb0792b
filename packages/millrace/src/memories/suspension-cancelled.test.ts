import { describe, expect, it } from '@jest/globals';
import {
  createAgent,
  isEvent,
  type Layer,
  suspend,
  type Suspension,
  tool,
  toolResults,
} from '../index.js';
import { inProcessCalls, suspendBelow } from '../journal/index.js';
import { journalIn } from '../journal/stored-calls.test-support.js';
import { onSuspensionCancelled, sessions } from '../layers/sessions/index.js';
import { agentTool } from '../layers/teams/index.js';
import { record, type ScriptedAnswer, scriptedModel, text, toolCall } from '../testing/index.js';

const waits = (name: string, from: 'client' | 'program' = 'client') =>
  tool({ name, description: 'Waits.', run: () => suspend({ name }, { from }) });

/** A layer that keeps what it is told, in one list for each call. */
const listening = (act: (suspension: Suspension) => void = () => undefined) => {
  const told: Suspension[][] = [];
  const layer: Layer = {
    name: 'listening',
    // Outside of the layer that loads the conversation.
    priority: 59,
    call: (context) => {
      const own: Suspension[] = [];
      told.push(own);
      context.local(onSuspensionCancelled).add((...all) => {
        expect(all).toHaveLength(1);
        own.push(all[0]);
        act(all[0]);
      });
      return (next) => next;
    },
  };
  return { told, layer };
};

const waiting = async (use: readonly Layer[], ...answers: readonly ScriptedAnswer[]) => {
  const model = scriptedModel([toolCall('pick', {}, 'a'), toolCall('pay', {}, 'b')], ...answers);
  const agent = createAgent({ model, use, tools: [waits('pick'), waits('pay', 'program')] });
  const session = sessions(agent).open('s');
  const { suspensions = [] } = await session.call('Book.');
  return { model, session, suspensions };
};

const named = (told: readonly Suspension[]) => told.map(({ toolCall: { id } }) => id);

describe('T13: onSuspensionCancelled', () => {
  it('is called once with each tool call that a message cancels, as the reply had it', async () => {
    const { told, layer } = listening();
    const { session, suspensions } = await waiting([layer], [text('Noon.')], [text('Bye.')]);
    expect(told).toEqual([[]]);
    expect((await session.call('What time is it?')).text).toBe('Noon.');
    expect(told).toEqual([[], suspensions]);
    expect(told[1]).toMatchObject([
      { toolCall: { id: 'a', name: 'pick' }, request: { name: 'pick' }, from: 'client' },
      { toolCall: { id: 'b', name: 'pay' }, request: { name: 'pay' }, from: 'program' },
    ]);
    await session.call('Bye.');
    expect(told).toEqual([[], suspensions, []]);
  });

  it('is not called for results, and beside a message only for what has none', async () => {
    const all = listening();
    const resumed = await waiting([all.layer], [text('Paid.')]);
    await resumed.session.call(toolResults({ a: 1, b: 2 }));
    expect(all.told).toEqual([[], []]);
    const part = listening();
    const cut = await waiting([part.layer], [text('Noon.')]);
    await cut.session.call([toolResults({ a: 1 }), 'And?']);
    expect(part.told.map(named)).toEqual([[], ['b']]);
  });

  it('is not called for a message that is refused, or for a part of the results', async () => {
    const { told, layer } = listening();
    const { session } = await waiting([layer]);
    const refused = session.call('And?', { onSuspended: 'refuse' });
    await expect(refused).rejects.toMatchObject({ code: 'invalidResume' });
    await session.call(toolResults({ a: 1 }));
    expect(told.flat()).toEqual([]);
  });

  it('is called by each layer that adds a function, and one that throws is a warning', async () => {
    const broken = listening(() => {
      throw new Error('no server');
    });
    const sound = listening();
    const { session } = await waiting(
      [broken.layer, { ...sound.layer, name: 'sound' }],
      [text('Noon.')],
    );
    const events = await record(session.stream$('What time is it?'));
    expect([broken.told, sound.told].map((told) => told.map(named))).toEqual([
      [[], ['a', 'b']],
      [[], ['a', 'b']],
    ]);
    const warnings = events.flatMap((event) => (isEvent(event, 'warning') ? [event.message] : []));
    expect(warnings).toEqual(
      ['pick', 'pay'].map(
        (name) =>
          `A function of 'onSuspensionCancelled' failed for the tool call '${name}': no server`,
      ),
    );
    expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { text: 'Noon.' } });
  });

  it('is called with each tool call that waits below a tool call', async () => {
    const { told, layer } = listening();
    const clerk = createAgent({
      name: 'clerk',
      model: scriptedModel([toolCall('pick'), toolCall('pay')]),
      tools: [waits('pick'), waits('pay')],
    });
    const model = scriptedModel([toolCall('clerk', { user_prompt: '?' }, 'k')], [text('Noon.')]);
    const lead = createAgent({
      model,
      use: [layer],
      tools: [agentTool(clerk, { description: 'Is.' })],
    });
    const session = sessions(lead.with(journalIn(inProcessCalls()), suspendBelow)).open('s');
    const { suspensions = [] } = await session.call('Sign.');
    expect(suspensions).toHaveLength(2);
    await session.call('And?');
    expect(told).toEqual([[], suspensions]);
  });
});
