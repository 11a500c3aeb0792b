import { describe, expect, it } from '@jest/globals';
import {
  type Agent,
  createAgent,
  inProcessMemory,
  type MemoryFactory,
  type MillraceError,
  parallel,
  sequential,
  suspend,
  type Tool,
  tool,
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
import { agentTool, asAgent, handoff } from 'millrace/teams';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { concatMap, defer, map, type Observable, Subject } from 'rxjs';
import { approveLater } from './index.js';

interface Process {
  readonly driver: CallStoreDriver;
  readonly memory: MemoryFactory;
  /** What was done, in any process. */
  readonly effects: string[];
}

const begin = (): Process => ({ driver: inProcessCalls(), memory: inProcessMemory(), effects: [] });

/** Does something that must not be done without a decision. */
const doing = ({ effects }: Process, name: string, more: Partial<Tool> = {}): Tool => ({
  ...tool({ name, description: 'Does it.', run: () => `did ${effects.push(name)}` }),
  ...more,
});

/** Calls its tool once, and then says what it returned. */
const using = (name: string, tools: readonly Tool[], calls: readonly string[]): Agent => {
  const answer: ScriptedAnswer = ({ messages }) =>
    messages.some(({ role }) => role === 'tool') || calls.length === 0
      ? [text('Done.')]
      : calls.map((it) => toolCall(it, {}, it));
  return createAgent({
    name,
    tools: [...tools],
    model: scriptedModel(...Array.from({ length: 9 }, () => answer)),
  });
};

const as = (agent: Agent, name = agent.name): Tool =>
  agentTool(agent, {
    name,
    description: 'Does it.',
    input: jsonSchema({ type: 'object' }),
    toPrompt: () => 'Do it.',
  });

const sessionOf = ({ driver, memory }: Process, agent: Agent) =>
  sessions(agent.with(journal(createCallStore(driver)), suspendBelow), { memory }).open('s');

/** Places of a tool named `pay`: directly, and below agents, teams and steps. */
const places: Readonly<Record<string, (pay: Tool, at?: string) => Agent>> = {
  'a tool': (pay) => using('lead', [pay], ['pay']),
  'a tool of a sub-agent': (pay, at = 'clerk') =>
    using('lead', [as(using(at, [pay], ['pay']), 'clerk')], ['clerk']),
  'a tool three agents down': (pay, at = 'clerk') =>
    using(
      'lead',
      [as(using('boss', [as(using(at, [pay], ['pay']), 'clerk')], ['clerk']))],
      ['boss'],
    ),
  'a tool in a sequence': (pay, at = 'clerk') =>
    asAgent(sequential(using('scribe', [], []), using(at, [pay], ['pay'])), { name: 'steps' }),
  'a tool in a branch': (pay, at = 'clerk') =>
    asAgent(parallel(using('scribe', [], []), using(at, [pay], ['pay'])), { name: 'steps' }),
  'a tool in a team': (pay, at = 'clerk') =>
    asAgent(handoff({ agents: [{ agent: using(at, [pay], ['pay']), description: 'Does it.' }] }), {
      name: 'team',
    }),
};

/** What a deploy makes of `approveLater(pay)`. */
const changes: Readonly<Record<string, (process: Process) => Tool | undefined>> = {
  'the guard is gone': (process) => doing(process, 'pay'),
  'the guard is gone, and the tool may run twice': (process) =>
    doing(process, 'pay', { idempotent: true }),
  'the tool is gone': () => undefined,
  'the tool has another name': (process) => approveLater(doing(process, 'settle')),
  'the tool is an agent': (process) => as(using('pay', [doing(process, 'pay')], ['pay']), 'pay'),
  'the tool is another agent': (process) =>
    as(using('cashier', [doing(process, 'pay')], ['pay']), 'pay'),
  'the tool suspends itself': ({ effects }) =>
    tool({
      name: 'pay',
      description: 'Waits.',
      run: () => {
        effects.push('pay');
        return suspend();
      },
    }),
};

const instead = (place: (pay: Tool) => Agent, given: Tool | undefined): Agent =>
  place(given ?? tool({ name: 'other', description: 'Another tool.', run: () => 'other' }));

/** Runs something in a process that ends when so many records are written. Returns whether it came to its own end. */
const dies = async (
  { driver }: Process,
  records: number,
  run: (dying: CallStoreDriver) => Observable<unknown>,
): Promise<boolean> => {
  let left = records;
  const ended$ = new Subject<never>();
  let isOver = false;
  run({
    ...driver,
    claim$: (callId) =>
      driver.claim$(callId).pipe(
        map(({ append$ }) => ({
          append$: (batch) =>
            defer(() => {
              const kept = batch.slice(0, left);
              left -= kept.length;
              const done$ = append$(kept);
              return kept.length === batch.length ? done$ : done$.pipe(concatMap(() => ended$));
            }),
        })),
      ),
  }).subscribe({
    error: () => undefined,
    complete: () => {
      isOver = true;
    },
  });
  for (let turn = 0; turn < 30 && !ended$.observed && !isOver; turn += 1) {
    await new Promise(setImmediate);
  }
  left = 0;
  ended$.error(new Error('killed'));
  return isOver;
};

const rows = Object.entries(places).flatMap(([where, place]) =>
  Object.entries(changes).flatMap(([what, change]) =>
    [true, { approved: false, reason: 'No.' }].map((decision) => ({
      where,
      what,
      place,
      change,
      decision,
      word: decision === true ? 'yes' : 'no',
    })),
  ),
);

/** Each row is cut at some of the records, and together at all of them. */
const stride = 4;
const resumable = rows
  .filter(({ where }) =>
    ['a tool', 'a tool of a sub-agent', 'a tool in a sequence'].includes(where),
  )
  .map((row, index) => ({ ...row, from: 1 + (index % stride) }));

describe('T13: a decision that nothing takes', () => {
  it.each(rows)('$where: $what, and the decision is $word', async (row) => {
    const { place, change, decision } = row;
    const process = begin();
    const guarded = () => place(approveLater(doing(process, 'pay')));
    const { suspensions = [] } = await sessionOf(process, guarded()).call('Do it.');
    expect(suspensions).toHaveLength(1);
    const id = suspensions[0]?.toolCall.id ?? '';
    const results = toolResults({ [id]: decision });
    const session = sessionOf(process, instead(place, change(process)));
    await expect(session.call(results)).rejects.toMatchObject({
      code: expect.stringMatching(/invalidResume|invalidState/u),
      message: expect.stringMatching(/pay|cashier|settle/u),
    });
    expect(process.effects).toEqual([]);
    // Nothing is lost: the agent as it was takes it.
    const end = await sessionOf(process, guarded()).call(results);
    expect(end.reason).toBe('answer');
    expect(process.effects).toEqual(decision === true ? ['pay'] : []);
  });

  it.each(resumable)(
    '$where: $what, in a call that is resumed, and the decision is $word',
    async (row) => {
      const { place, what, change, decision, from } = row;
      let cuts = 0;
      for (let records = from, isWhole = false; !isWhole; records += stride) {
        const process = begin();
        const guarded = () => place(approveLater(doing(process, 'pay')));
        const { suspensions = [] } = await sessionOf(process, guarded()).call('Do it.');
        const results = toolResults({ [suspensions[0]?.toolCall.id ?? '']: decision });
        isWhole = await dies(process, records, (driver) =>
          sessionOf({ ...process, driver }, guarded()).call$(results, { callId: 'c' }),
        );
        if (isWhole) break;
        cuts += 1;
        const done = [...process.effects];
        const resumed = (agent: Agent) => {
          const durable = journal(createCallStore(process.driver));
          const { memory } = process;
          const opened = sessions(agent.with(durable, suspendBelow), { memory }).open('s');
          return durable.resume(opened, 'c');
        };
        const outcome = await resumed(instead(place, change(process))).then(
          ({ reason }) => reason,
          ({ code }: MillraceError) => code,
        );
        // Its end may have been recorded: then nothing is left to run.
        expect(outcome).toMatch(/^(?:answer|invalidResume|invalidState)$/u);
        // An agent of the same name finds that it has called `pay` with a yes, which the person has said.
        const isApproved = decision === true && what === 'the tool is an agent';
        if (!isApproved) expect(process.effects).toEqual(done);
        if (outcome !== 'answer') await resumed(guarded());
        expect(process.effects.length).toBeLessThanOrEqual(decision === true ? 1 : 0);
      }
      expect(cuts).toBeGreaterThan(1);
    },
  );

  const members = (process: Process, at = 'clerk') => {
    const transfer: ScriptedAnswer = () => [toolCall(`transfer_to_${at}`)];
    const scribe = createAgent({
      name: 'scribe',
      model: scriptedModel(...Array.from({ length: 9 }, () => transfer)),
    });
    const clerk = using(at, [approveLater(doing(process, 'pay'))], ['pay']);
    return [scribe, clerk].map((agent) => ({ agent, description: 'Does it.' }));
  };
  it.each<[what: string, team: (process: Process) => Agent]>([
    ['has gone', (process) => handoff({ agents: members(process).slice(0, 1) })],
    ['has another name', (process) => handoff({ agents: members(process, 'cashier') })],
    ['starts now', (process) => handoff({ agents: members(process), start: 'clerk' })],
    ['comes first now', (process) => handoff({ agents: members(process).toReversed() })],
    ['is asked by no one', (process) => handoff({ agents: members(process), allow: {} })],
  ])('a member of a team that has asked %s', async (_what, team) => {
    const process = begin();
    const before = () => handoff({ agents: members(process) });
    const { suspensions = [] } = await sessionOf(process, before()).call('Do it.');
    const results = toolResults({ [suspensions[0]?.toolCall.id ?? '']: true });
    await expect(sessionOf(process, team(process)).call(results)).rejects.toMatchObject({
      code: expect.stringMatching(/invalidResume|invalidState/u),
    });
    expect(process.effects).toEqual([]);
    expect((await sessionOf(process, before()).call(results)).reason).toBe('answer');
    expect(process.effects).toEqual(['pay']);
  });

  it('runs none of several tools if one of them has changed', async () => {
    const process = begin();
    const make = (pay: Tool) =>
      using('lead', [approveLater(doing(process, 'send')), pay], ['send', 'pay']);
    const nested = (pay: Tool) => using('top', [as(make(pay))], ['lead']);
    for (const place of [make, nested]) {
      const guarded = () => place(approveLater(doing(process, 'pay')));
      const session = () => sessionOf({ ...process, memory }, guarded());
      const memory = inProcessMemory();
      const { suspensions = [] } = await session().call('Do it.');
      const results = toolResults(
        Object.fromEntries(suspensions.map(({ toolCall }) => [toolCall.id, true])),
      );
      const changed = sessionOf({ ...process, memory }, place(doing(process, 'pay')));
      await expect(changed.call(results)).rejects.toMatchObject({ code: 'invalidResume' });
      expect(process.effects).toEqual([]);
      await session().call(results);
      expect(process.effects.splice(0).toSorted()).toEqual(['pay', 'send']);
    }
  });

  it('I23: is not asked for below a tool that cannot run again: the call errors, and names it', async () => {
    const process = begin();
    const clerk = () => using('clerk', [approveLater(doing(process, 'pay'))], ['pay']);
    const calling = (more: object) =>
      tool({
        name: 'calls',
        description: 'Calls an agent.',
        ...more,
        run: (_, parent) => clerk().call$('Do it.', { parent }),
      });
    const ask = (more: object) => sessionOf(process, using('lead', [calling(more)], ['calls']));
    await expect(ask({}).call('Do it.')).rejects.toMatchObject({
      code: 'config',
      message: expect.stringMatching(/'calls'.*'callsAgents: true'/u),
    });
    const marked = { ...process, memory: inProcessMemory() };
    const session = () =>
      sessionOf(marked, using('lead', [calling({ callsAgents: true })], ['calls']));
    const { suspensions = [] } = await session().call('Do it.');
    const results = toolResults({ [suspensions[0]?.toolCall.id ?? '']: true });
    // Without the mark, nothing tells it from a tool that would act.
    const unmarked = sessionOf(marked, using('lead', [calling({})], ['calls']));
    await expect(unmarked.call(results)).rejects.toMatchObject({ code: 'invalidResume' });
    expect(process.effects).toEqual([]);
    await session().call(results);
    expect(process.effects).toEqual(['pay']);
  });
});
