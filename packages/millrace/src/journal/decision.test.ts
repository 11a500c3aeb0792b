import { describe, expect, it } from '@jest/globals';
import { lastValueFrom } from 'rxjs';
import { createAgent, requireApproval, tool, type Verdict } from '../index.js';
import { agentTool } from '../layers/teams/index.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';
import { createCallStore, inProcessCalls, isUndecided$, journal } from './index.js';

/** A call that was decided on once, by itself or in a sub-agent. */
const decidedCall = async (verdict: Verdict, isBelow: boolean) => {
  const store = createCallStore(inProcessCalls());
  const pay = requireApproval(
    tool({ name: 'pay', description: 'Pays.', run: () => 'Paid.' }),
    () => verdict,
  );
  const model = scriptedModel([toolCall('pay', { euros: 1 })], [text('Done.')]);
  const payer = createAgent({ name: 'payer', model, tools: [pay] });
  const asking = createAgent({
    model: scriptedModel([toolCall('payer', { user_prompt: 'Pay.' })], [text('Done.')]),
    tools: [agentTool(payer, { description: 'Pays.' })],
  });
  const decided: string[] = [];
  const agent = (isBelow ? asking : payer).with(journal(store));
  agent.stream$('Pay.', { callId: 'c' });
  await lastValueFrom(agent.stream$('Pay.', { callId: 'c' })).then(() => undefined);
  const records = await lastValueFrom(store.driver.read$('c', { kind: 'step' }));
  decided.push(...records.map(({ name }) => name).filter((name) => name.endsWith('/1/0/intent')));
  const callId = (decided.at(-1) ?? '').replace(/\/1\/0\/intent$/, '');
  return { store, callId };
};

const input = { euros: 2 };

describe('S6: a decision on a tool call of a stored call', () => {
  it.each<[Verdict, Verdict, boolean | string]>([
    [true, true, false],
    [true, { approved: true }, false],
    [true, { approved: true, input: { euros: 1 } }, false],
    [true, { approved: true, input }, 'approved with the input {"euros":1}'],
    [true, false, 'approved with the input {"euros":1}'],
    [true, { approved: false, reason: 'No.' }, 'approved'],
    [false, false, false],
    [false, { approved: false, reason: 'Other.' }, false],
    [false, true, 'it was refused'],
    [{ approved: true, input }, { approved: true, input }, false],
    [{ approved: true, input }, true, 'approved with the input {"euros":2}'],
    [{ approved: true, input }, { approved: true }, 'approved with the input {"euros":2}'],
    [{ approved: true, input }, { approved: true, input: { euros: 1 } }, '{"euros":2}'],
    [{ approved: true, input }, false, '{"euros":2}'],
    [{ approved: true, input: { euros: 1 } }, true, false],
    [{ approved: false, reason: 'No.' }, { approved: false, reason: 'Other.' }, false],
    [{ approved: false, reason: 'No.' }, { approved: true, input }, 'it was refused'],
    [{ approved: true, input }, { approved: true, input: { euros: 3 } }, '{"euros":2}'],
  ])('after %j, %j: %j', async (first, second, outcome) => {
    for (const isBelow of [false, true]) {
      const { store, callId } = await decidedCall(first, isBelow);
      const asked = { callId, toolCallId: 'call_1_0' };
      const checked = lastValueFrom(isUndecided$(store, 'c', asked, second));
      if (typeof outcome === 'boolean') expect(await checked).toBe(outcome);
      else {
        await expect(checked).rejects.toMatchObject({
          code: 'invalidResume',
          message: expect.stringContaining(outcome),
        });
      }
    }
  });

  it('is new for a tool call without one, and for an unknown call', async () => {
    const { store } = await decidedCall(true, false);
    for (const [root, toolCallId] of [
      ['c', 'call_9_0'],
      ['unknown', 'call_1_0'],
    ] as const) {
      const asked = { callId: root, toolCallId };
      expect(await lastValueFrom(isUndecided$(store, root, asked, false))).toBe(true);
    }
  });
});
