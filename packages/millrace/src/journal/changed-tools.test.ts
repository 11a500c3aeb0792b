import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, map, NEVER, take, toArray } from 'rxjs';
import { agentTool } from '../layers/teams/index.js';
import { createAgent, only, type Tool, tool, toolGroup } from '../index.js';
import type { ToolEntry } from '../tools/types.js';
import { jsonSchema } from '../schema/index.js';
import { sessions } from '../layers/sessions/index.js';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from '../testing/index.js';
import { type CallStoreDriver, createCallStore, inProcessCalls, journal } from './index.js';

const used = (name: string, options: Partial<Tool> = {}, fields: object = {}): Tool => ({
  ...tool({
    name,
    description: `The tool ${name}.`,
    input: jsonSchema({ type: 'object', properties: { a: { type: 'string' }, ...fields } }),
    run: () => 'ok',
  }),
  ...options,
});

/** A call of a tool that fails after it, and the warnings of its resume with other tools. */
const warningsOf = async (
  before: readonly ToolEntry[],
  now: readonly ToolEntry[],
  { driver = inProcessCalls(), instructions = 'Same.', redact = (it: string) => it } = {},
) => {
  const durable = journal(createCallStore(driver), { redact });
  const failing = scriptedModel([toolCall('look', { a: 'x' })]);
  const first = createAgent({
    model: failing,
    tools: before,
    instructions: 'Same.',
    use: [durable],
  });
  await first.call('?', { callId: 'c' }).catch(() => undefined);
  const model = scriptedModel([text('Done.')]);
  const second = createAgent({ model, tools: now, instructions });
  const events = await lastValueFrom(
    durable.resumeStream$(second, 'c').pipe(only('warning'), toArray()),
  );
  return events.map(({ message }) => message);
};

const look = used('look');
const changed = (what: string) => [`The tools have changed since the call started: ${what}.`];

describe('S6: a call that is resumed with other tools', () => {
  it.each<[string, readonly ToolEntry[], readonly ToolEntry[], readonly string[]]>([
    ['the same', [look], [look], []],
    ['equal ones', [look, used('b')], [used('b'), used('look')], []],
    ['another description', [look], [{ ...look, description: 'Other.' }], []],
    [
      'keys in another order',
      [used('look', {}, { b: { type: 'string', title: 'B' } })],
      [used('look', {}, { b: { title: 'B', type: 'string' } })],
      [],
    ],
    ['a new one', [look], [look, used('b')], changed("'b' is new")],
    ['one more than none', [], [look], changed("'look' is new")],
    ['one less', [look, used('b')], [look], changed("'b' is missing")],
    [
      'another schema',
      [look],
      [used('look', {}, { b: {} })],
      changed("'look' has another input schema"),
    ],
    [
      'one that is idempotent',
      [look],
      [used('look', { idempotent: true })],
      changed("'look' is idempotent now"),
    ],
    [
      'one that no longer is',
      [used('look', { idempotent: true })],
      [used('look', { idempotent: false })],
      changed("'look' is no longer idempotent"),
    ],
    [
      'several changes',
      [look, used('b'), used('constructor')],
      [used('look', { idempotent: true }, { b: {} }), used('d')],
      changed(
        "'look' has another input schema, 'look' is idempotent now, 'b' is missing, 'constructor' is missing, 'd' is new",
      ),
    ],
    [
      'a group',
      [look, toolGroup({ name: 'web', description: 'Web.', tools: [used('b')] })],
      [look, toolGroup({ name: 'web', description: 'Web.', tools: [used('d')], active: true })],
      changed("'b' is missing, 'd' is new"),
    ],
    [
      'a tool in a group',
      [look, used('b')],
      [look, toolGroup({ name: 'web', description: 'Web.', tools: [used('b')] })],
      [],
    ],
  ])('warns of what has changed: %s', async (_name, before, now, expected) => {
    expect(await warningsOf(before, now)).toEqual(expected);
  });

  it('names ten changes, and the instructions', async () => {
    const many = Array.from({ length: 13 }, (_, index) => used(`t${index}`));
    const [message, ...others] = await warningsOf([look], [look, ...many], {
      instructions: 'New.',
    });
    expect(others).toEqual([]);
    expect(message).toMatch(
      /^The instructions have changed since the call started\. The tools have/u,
    );
    expect(message).toMatch(/'t9' is new, and 3 more changes\.$/u);
  });

  it('does not warn of what a redaction has changed', async () => {
    const redact = (it: string) => it.replaceAll(/\d+/gu, '#');
    expect(await warningsOf([look], [look], { redact })).toEqual([]);
  });

  it('does not warn if an earlier release has recorded the call, which knew no tools', async () => {
    const driver = inProcessCalls();
    const claim$: CallStoreDriver['claim$'] = (callId) =>
      driver.claim$(callId).pipe(
        map(({ append$ }) => ({
          append$: (records) =>
            append$(
              records.map((record) => {
                if (record.name !== 'c/open') return record;
                const { tools, ...opening } = JSON.parse(record.text) as Record<string, unknown>;
                expect(tools).toEqual({ look: expect.stringMatching(/^[a-z]{7}$/u) });
                return { ...record, text: JSON.stringify(opening) };
              }),
            ),
        })),
      );
    expect(await warningsOf([look], [used('b')], { driver: { ...driver, claim$ } })).toEqual([]);
  });

  it('compares the tools of a session, and those of a sub-agent', async () => {
    const durable = journal(createCallStore(inProcessCalls()));
    const agentOf = (own: readonly Tool[], ...answers: readonly ScriptedAnswer[]) => {
      const helper = createAgent({
        name: 'helper',
        model: scriptedModel([toolCall('look')], () => NEVER),
        tools: own,
      });
      const tools = [agentTool(helper, { description: 'Helps.' })];
      return createAgent({ model: scriptedModel(...answers), tools });
    };
    const chat = sessions(agentOf([look], [toolCall('helper', { user_prompt: '?' })])).open('s');
    chat.toolkit.add(used('own'));
    chat
      .with(durable)
      .call$('?', { callId: 'c' })
      .subscribe({ error: () => undefined })
      .unsubscribe();
    const again = sessions(agentOf([look, used('b')], [text('Done.')])).open('s');
    const warnings = await lastValueFrom(
      durable.resumeStream$(again, 'c', { onUncertain: 'rerun' }).pipe(
        only('warning'),
        take(2),
        map(({ agent, message }) => [agent.join('/'), message]),
        toArray(),
      ),
    );
    expect(warnings).toContainEqual(['agent', ...changed("'own' is missing")]);
    expect(warnings).toContainEqual(['agent/helper', ...changed("'b' is new")]);
  });
});
