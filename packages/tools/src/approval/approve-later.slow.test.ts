import { describe, expect, it } from '@jest/globals';
import {
  type Agent,
  approval,
  type Approver,
  createAgent,
  inProcessMemory,
  type MemoryFactory,
  type Model,
  preset,
  requireApproval,
  tool,
  toolGroup,
  toolOutput,
  toolResults,
} from 'millrace';
import {
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  journal,
  suspendBelow,
} from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { sessions } from 'millrace/sessions';
import { agentTool } from 'millrace/teams';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { concatMap, defer, lastValueFrom, map, of, Subject, throwError } from 'rxjs';
import { approveLater } from './index.js';

interface Process {
  readonly driver: CallStoreDriver;
  readonly memory: MemoryFactory;
  readonly paid: unknown[];
}

const begin = (): Process => ({ driver: inProcessCalls(), memory: inProcessMemory(), paid: [] });

const input = jsonSchema({
  type: 'object',
  properties: { to: { type: 'string' }, crowns: { type: 'number', minimum: 1 } },
  required: ['to', 'crowns'],
});

const payer = ({ paid }: Process) =>
  tool({
    name: 'pay',
    description: 'Pays.',
    input,
    run: (given) => `Paid ${paid.push(given)}.`,
  });

const order = { to: 'the miller', crowns: 12 };

const always = (answer: ScriptedAnswer) =>
  scriptedModel(...Array.from({ length: 9 }, () => answer));

/** Says what its tool returned. */
const clerk = (process: Process, given: Readonly<Record<string, unknown>> = order): Agent =>
  createAgent({
    name: 'clerk',
    model: always(({ messages }) => {
      const last = messages.at(-1);
      const result = last?.role === 'tool' ? last.content[0] : undefined;
      if (result === undefined) return [toolCall('pay', given)];
      return [text(`${result.isError ? 'Failed' : 'Done'}: ${JSON.stringify(result.content)}`)];
    }),
    tools: [approveLater(payer(process))],
  });

const sessionOf = ({ driver, memory }: Process, agent: Agent) =>
  sessions(agent.with(journal(createCallStore(driver)), suspendBelow), { memory }).open('s');

const suspended = async (process: Process, make: () => Agent) => {
  const { reason, suspensions = [] } = await sessionOf(process, make()).call('Pay.');
  expect(reason).toBe('suspended');
  return suspensions.map(({ toolCall: { id, name, input: asked }, request, from: by }) => {
    expect([request, by]).toEqual([{ tool: 'pay' }, 'program']);
    return { id, name, asked };
  });
};

describe('T13: a tool that is approved later', () => {
  it('runs once it is approved, in another process, with the input that was shown', async () => {
    const process = begin();
    const [asked] = await suspended(process, () => clerk(process));
    expect(asked).toMatchObject({ name: 'approve_pay', asked: order });
    expect(process.paid).toEqual([]);
    const reply = await sessionOf(process, clerk(process)).call(
      toolResults({ [asked?.id ?? '']: true }),
    );
    expect(reply.text).toBe('Done: [{"type":"text","text":"Paid 1."}]');
    expect(process.paid).toEqual([order]);
    expect(reply.toolCalls).toMatchObject([{ name: 'pay', input: order, isError: false }]);
  });

  it('is approved three levels deep', async () => {
    const process = begin();
    const over = (agent: Agent, name: string) =>
      createAgent({
        name,
        model: scriptedModel([toolCall(agent.name, { user_prompt: 'Pay.' })], [text('All done.')]),
        tools: [agentTool(agent, { description: 'Pays.' })],
      });
    const later = (agent: Agent, name: string) =>
      createAgent({
        name,
        model: scriptedModel([text('All done.')]),
        tools: [agentTool(agent, { description: 'Pays.' })],
      });
    const [asked] = await suspended(process, () => over(over(clerk(process), 'team'), 'lead'));
    expect(asked?.id.split('/')).toHaveLength(4);
    const reply = await sessionOf(process, later(later(clerk(process), 'team'), 'lead')).call(
      toolResults({ [asked?.id ?? '']: { approved: true } }),
    );
    expect(reply).toMatchObject({ reason: 'answer', text: 'All done.' });
    expect(process.paid).toEqual([order]);
  });

  it.each([
    [false, ''],
    [{ approved: false, reason: 'Too much.' }, ' Too much.'],
    ['yes', ''],
    [{ approved: 'true' }, ''],
    [null, ''],
    [toolOutput({ content: 'true', isError: true }), ''],
  ])('does not run for %j, and the model reads why', async (decision, why) => {
    const process = begin();
    const [asked] = await suspended(process, () => clerk(process));
    const reply = await sessionOf(process, clerk(process)).call(
      toolResults({ [asked?.id ?? '']: decision }),
    );
    expect(reply.text).toContain(`Failed: `);
    expect(reply.text).toContain(`this call to pay was not approved.${why}"`);
    expect(process.paid).toEqual([]);
  });

  it('asks for no approval of invalid arguments', async () => {
    const process = begin();
    const reply = await sessionOf(process, clerk(process, { to: 'me', crowns: 0 })).call('Pay.');
    expect(reply.text).toMatch(/^Failed: .*crowns/);
    const strict = {
      ...payer(process),
      validation$: () => of({ valid: false as const, problems: ['The miller is closed.'] }),
    };
    const agent = createAgent({
      model: scriptedModel([toolCall('pay', order)], [text('Done.')]),
      tools: [approveLater(strict)],
    });
    expect((await sessionOf(begin(), agent).call('Pay.')).toolCalls).toMatchObject([
      { isError: true, output: expect.stringContaining('The miller is closed.') },
    ]);
  });

  it('asks only when it should, and runs the tool once in either case', async () => {
    const process = begin();
    const seen: unknown[] = [];
    const make = (crowns: number) =>
      createAgent({
        model: always(({ messages }) =>
          messages.length === 1
            ? [toolCall('pay', { to: 'me', crowns })]
            : [text(JSON.stringify(messages.at(-1)?.content))],
        ),
        tools: [
          approveLater(payer(process), {
            when: (given, { agent }) => {
              seen.push([given, agent]);
              return crowns > 10;
            },
          }),
        ],
      });
    const other = { ...process, memory: inProcessMemory() };
    const small = await sessionOf(other, make(5)).call('Pay.');
    expect(small.text).toContain('Paid 1.');
    expect(seen).toEqual([[{ to: 'me', crowns: 5 }, ['agent']]]);
    const [asked] = await suspended(process, () => make(50));
    await sessionOf(process, make(50)).call(toolResults({ [asked?.id ?? '']: true }));
    expect(process.paid).toEqual([
      { to: 'me', crowns: 5 },
      { to: 'me', crowns: 50 },
    ]);
    expect(() => approveLater(payer(process), { if: () => true } as never)).toThrow("'if'");
  });

  it('T9: an error of the tool is one', async () => {
    const process = begin();
    const fails = tool({
      name: 'pay',
      description: 'Pays.',
      run: () => {
        throw new Error('The till is empty.');
      },
    });
    const make = () =>
      createAgent({
        model: scriptedModel(({ messages }) =>
          messages.length === 1 ? [toolCall('pay')] : [text(JSON.stringify(messages.at(-1)))],
        ),
        tools: [approveLater(fails)],
      });
    const [asked] = await suspended(process, make);
    const reply = await sessionOf(process, make()).call(toolResults({ [asked?.id ?? '']: true }));
    expect(reply.text).toContain('The till is empty.');
    expect(reply.text).toContain('"isError":true');
  });

  it('I12: shows no values that the program sets, and runs with them', async () => {
    const process = begin();
    const own = preset(payer(process), { to: 'the bank' });
    const make = () =>
      createAgent({
        model: scriptedModel(({ messages }) =>
          messages.length === 1 ? [toolCall('pay', { crowns: 3 })] : [text('Done.')],
        ),
        tools: [approveLater(own)],
      });
    const [asked] = await suspended(process, make);
    expect(asked?.asked).toEqual({ crowns: 3 });
    await sessionOf(process, make()).call(toolResults({ [asked?.id ?? '']: true }));
    expect(process.paid).toEqual([{ to: 'the bank', crowns: 3 }]);
  });

  it('S6: pays at most once, wherever the process dies', async () => {
    const until = async (count: number) => {
      const process = begin();
      const [asked] = await suspended(process, () => clerk(process));
      const decision = toolResults({ [asked?.id ?? '']: true });
      const ended$ = new Subject<never>();
      let left = count;
      const driver: CallStoreDriver = {
        ...process.driver,
        claim$: (callId) =>
          process.driver.claim$(callId).pipe(
            map((claim) => ({
              append$: (batch) =>
                defer(() => {
                  const kept = batch.slice(0, left);
                  left -= kept.length;
                  const done$ = claim.append$(kept);
                  return kept.length === batch.length ? done$ : done$.pipe(concatMap(() => ended$));
                }),
            })),
          ),
      };
      sessionOf({ ...process, driver }, clerk(process))
        .call$(decision, { callId: 'c' })
        .subscribe({ error: () => undefined });
      left = 0;
      ended$.error(new Error('killed'));
      const kept = journal(createCallStore(process.driver));
      const agent = clerk(process).with(kept, suspendBelow);
      const session = sessions(agent, { memory: process.memory }).open('s');
      const records = await lastValueFrom(process.driver.read$('c'));
      const reply = await kept.resume(session, 'c');
      expect(process.paid.length).toBeLessThanOrEqual(1);
      expect(reply.text).toMatch(process.paid.length === 1 ? /Paid 1|unknown/ : /unknown/);
      return records.length === count;
    };
    let count = 1;
    while (await until(count)) count += 1;
    expect(count).toBeGreaterThan(8);
  });

  it('S6: pays once if the model fails after the payment, and the decision comes again', async () => {
    const process = begin();
    const [asked] = await suspended(process, () => clerk(process));
    const results = toolResults({ [asked?.id ?? '']: true });
    const down: Model = { name: 'down', stream$: () => throwError(() => new Error('Down.')) };
    const tools = [approveLater(payer(process))];
    const failing = sessionOf(process, createAgent({ name: 'clerk', model: down, tools }));
    await expect(failing.call(results)).rejects.toThrow('Down.');
    const again = sessionOf(process, clerk(process));
    await expect(again.call(results)).rejects.toMatchObject({ code: 'invalidResume' });
    expect(process.paid).toEqual([order]);
  });

  it('I20: is asked about after the approvers of the tool, once about each input', async () => {
    const process = begin();
    const asked: unknown[] = [];
    const make = (approver: Approver) => {
      const guarded = requireApproval(payer(process), approver);
      return createAgent({
        model: always(({ messages }) =>
          messages.length === 1 ? [toolCall('pay', order)] : [text('Done.')],
        ),
        tools: [approveLater(guarded)],
      });
    };
    const halves: Approver = ({ input: given }) => {
      asked.push(given['crowns']);
      return { approved: true, input: { ...given, crowns: 6 } };
    };
    const [shown] = await suspended(process, () => make(halves));
    expect(shown?.asked).toEqual({ ...order, crowns: 6 });
    expect(asked).toEqual([12]);
    await sessionOf(process, make(halves)).call(toolResults({ [shown?.id ?? '']: true }));
    expect(process.paid).toEqual([{ ...order, crowns: 6 }]);
    expect(asked).toEqual([12]);
    const denied = begin();
    const agent = createAgent({
      model: scriptedModel([toolCall('pay', order)], [text('Done.')]),
      tools: [approveLater(requireApproval(payer(denied), () => false))],
    });
    expect(await sessionOf(denied, agent).call('Pay.')).toMatchObject({
      ...{ reason: 'answer', toolCalls: [{ isError: true }] },
    });
  });

  it('I20: goes back to the person if its input changes after the approval', async () => {
    const process = begin();
    let crowns = 20;
    // Inherited, so it also decides on the tool call that was approved.
    const more = approval(({ tool: name, input: given }) =>
      name === 'pay'
        ? { approved: true, input: { ...given, crowns: Math.min(22, ++crowns) } }
        : true,
    );
    const agent = () => clerk(process).with(more);
    const seen: unknown[] = [];
    let reply = await sessionOf(process, agent()).call('Pay.');
    while (reply.reason === 'suspended' && seen.length < 9) {
      const [{ toolCall: waiting } = { toolCall: undefined }] = reply.suspensions ?? [];
      seen.push(waiting?.input['crowns']);
      expect(process.paid).toEqual([]);
      reply = await sessionOf(process, agent()).call(toolResults({ [waiting?.id ?? '']: true }));
    }
    expect(seen).toEqual([21, 22]);
    expect(process.paid).toEqual([{ ...order, crowns: 22 }]);
  });

  it('I23: a call without what it needs errors when it starts, and names what is missing', async () => {
    const process = begin();
    const { driver, memory, paid } = process;
    const model = scriptedModel();
    const agent = createAgent({ name: 'clerk', model, tools: [approveLater(payer(process))] });
    const layer = journal(createCallStore(driver));
    const inSession = (own: Agent) => sessions(own, { memory }).open('s').call('Pay.');
    const lacks: readonly (readonly [Promise<unknown>, RegExp])[] = [
      [agent.call('Pay.'), /'pay' needs a session: .* and journal\(store\) and suspendBelow\./],
      [inSession(agent), /'pay' needs journal\(store\) and suspendBelow\./],
      [inSession(agent.with(layer)), /'pay' needs suspendBelow\./],
      [agent.with(layer, suspendBelow).call('Pay.'), /'pay' needs a session: sessions\(agent\)/],
      [
        // Also if the group of the tool is not active.
        createAgent({
          model,
          tools: [
            toolGroup({
              name: 'money',
              description: 'Pays.',
              tools: [approveLater(payer(process))],
            }),
          ],
        }).call('Pay.'),
        /'pay' needs/,
      ],
    ];
    for (const [call, message] of lacks) {
      await expect(call).rejects.toMatchObject({
        code: 'config',
        message: expect.stringMatching(message),
      });
    }
    expect(model.requests).toEqual([]);
    expect(paid).toEqual([]);
    expect(() => approveLater('pay' as never)).toThrow('approveLater() takes a tool.');
  });

  it('I23: is not asked about if a call between has a memory of its own', async () => {
    const process = begin();
    const between = tool({
      name: 'ask',
      description: 'Asks the clerk.',
      callsAgents: true,
      run: (_, parent) =>
        sessions(clerk(process), { memory: process.memory }).open('own').call$('Pay.', { parent }),
    });
    const lead = createAgent({ name: 'lead', model: always([toolCall('ask')]), tools: [between] });
    await expect(sessionOf(process, lead).call('Pay.')).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining("the agent 'clerk' has a memory of its own"),
    });
  });

  it('I23: an async predicate is an error: it would ask always', async () => {
    const process = begin();
    const when = (() => Promise.resolve(false)) as never;
    const agent = createAgent({
      model: always([toolCall('pay', order)]),
      tools: [approveLater(payer(process), { when })],
    });
    await expect(sessionOf(process, agent).call('Pay.')).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining("'when' must return true or false"),
    });
  });

  it('stops in the same tick when its consumer unsubscribes', async () => {
    const process = begin();
    let isTornDown = false;
    const endless = tool({
      name: 'pay',
      description: 'Pays.',
      run: (_input: unknown, { signal }) => {
        signal.addEventListener('abort', () => (isTornDown = true));
        return new Subject<string>();
      },
    });
    const make = () =>
      createAgent({ model: scriptedModel([toolCall('pay')]), tools: [approveLater(endless)] });
    const [asked] = await suspended(process, make);
    const session = sessionOf(process, make());
    const running = session.stream$(toolResults({ [asked?.id ?? '']: true })).subscribe();
    running.unsubscribe();
    expect(isTornDown).toBe(true);
  });
});
