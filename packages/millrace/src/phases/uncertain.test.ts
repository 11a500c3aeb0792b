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
import { jsonSchema } from '../schema/index.js';
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

  describe('S6: of a tool that has changed since it began', () => {
    const first = { type: 'object', properties: { to: { type: 'string' } } } as const;
    const further = { ...first, required: ['from'] } as const;
    const forms = [
      { form: 'once', idempotent: false, schema: first },
      { form: 'idempotent', idempotent: true, schema: first },
      { form: 'once, with another input', idempotent: false, schema: further },
      { form: 'idempotent, with another input', idempotent: true, schema: further },
    ];
    const rows = forms.slice(0, 2).flatMap((before) =>
      forms.flatMap((now) =>
        (['report', 'rerun'] as const).map((onUncertain) => ({
          ...{ before, now, onUncertain },
          title: `${before.form}, then ${now.form}, ${onUncertain}`,
        })),
      ),
    );
    it.each(rows)('$title', async ({ before, now, onUncertain }) => {
      const sent: string[] = [];
      const tools = ({ idempotent, schema }: (typeof forms)[number]) => [
        tool({
          name: 'send',
          description: 'Sends.',
          ...{ idempotent, input: jsonSchema(schema) },
          run: () => `Sent ${sent.push('sent')}.`,
        }),
      ];
      const begun = (driver: CallStoreDriver) =>
        agentOf(driver, tools(before)).call$('?', { callId: 'c' });
      const store = await leftAt('1/0/intent', begun);
      sent.length = 0;
      const events = await record(
        journalIn(store, { onUncertain }).resumeStream$(agentOf(store, tools(now)), 'c'),
      );
      const last = events.at(-1);
      const heard = last?.type === 'postCall' ? textOf(last.reply) : '';
      const mayRun = onUncertain === 'rerun' || (before.idempotent && now.idempotent);
      const fits = now.schema === first;
      expect(sent).toHaveLength(mayRun && fits ? 1 : 0);
      // Otherwise the model would correct its arguments, and do it twice.
      if (sent.length === 0) expect(heard).toContain('unknown whether this has run');
      if (mayRun && !fits) expect(heard).toContain('from');
    });
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
