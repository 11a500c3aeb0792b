import { describe, expect, it } from '@jest/globals';
import { of } from 'rxjs';
import { createAgent, type Layer, noUsage, type Step, textOf, tool, type Tool } from '../index.js';
import { leftAt } from '../journal/dying-driver.test-support.js';
import {
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  journal,
} from '../journal/index.js';
import { record, type ScriptedAnswer, scriptedModel, text, toolCall } from '../testing/index.js';
import { journalIn } from '../journal/stored-calls.test-support.js';

/** Says what came of the tool that it asks for. */
const answer: ScriptedAnswer = ({ messages }) => {
  const last = messages.at(-1);
  return last?.role === 'tool'
    ? last.content.flatMap((it) => text(textOf(it)))
    : [toolCall('send')];
};

const agentOf = (driver: CallStoreDriver, tools: readonly Tool[]) =>
  createAgent({
    model: scriptedModel(answer, answer),
    tools,
    use: [journal(createCallStore(driver))],
  });

const send = tool({ name: 'send', description: 'Sends.', run: () => 'Sent.' });

describe('a tool call with an unknown end', () => {
  it('S6: is not said to be not run where its tool has been taken away', async () => {
    const begun = (driver: CallStoreDriver) => agentOf(driver, [send]).call$('?', { callId: 'c' });
    const store = await leftAt('1/0/intent', begun);
    const events = await record(
      journalIn(store, { onUncertain: 'rerun' }).resumeStream$(agentOf(store, []), 'c'),
    );
    expect(events).toContainEqual(expect.objectContaining({ type: 'uncertain', then: 'report' }));
    const last = events.at(-1);
    expect(last?.type === 'postCall' && textOf(last.reply)).toContain(
      'unknown whether this has run',
    );
  });

  it.each([
    ['with', [journal(createCallStore(inProcessCalls()))]],
    ['without', []],
  ])('S6: does not exist if a layer has decided, %s a journal', async (_, use) => {
    const deciding: Layer = {
      name: 'deciding',
      step:
        () =>
        (next) =>
        <T>(step: Step<T>) => {
          if (step.kind !== 'intent') return next(step);
          const decision: unknown = { toolCall: step.input, failed: false, usage: noUsage };
          return of(decision as T);
        },
    };
    const agent = createAgent({
      model: scriptedModel(answer, answer),
      tools: [send],
      use: [...use, deciding],
    });
    expect((await agent.call('?')).text).toBe('Sent.');
  });
});
