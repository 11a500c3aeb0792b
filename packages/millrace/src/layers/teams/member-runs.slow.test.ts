import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  catchError,
  filter,
  lastValueFrom,
  map,
  throwError,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import { stepsDialect, textTools } from '@millrace/text-tools';
import {
  type Agent,
  createAgent,
  interruptOn,
  type Layer,
  on,
  type ModelChunk,
  parallel,
  race,
  type Reply,
  requireApproval,
  sequential,
  suspend,
  textOf,
  tool,
  toolResults,
  type ToolRun,
} from '../../index.js';
import { answerWith } from '../../call/index.js';
import { inProcessCalls, suspendBelow } from '../../journal/index.js';
import { journalIn } from '../../journal/stored-calls.test-support.js';
import {
  type ScriptedAnswer,
  type ScriptedModel,
  scriptedModel,
  text,
  toolCall,
} from '../../testing/index.js';
import { jsonSchema } from '../../schema/index.js';
import { sessions } from '../sessions/index.js';
import { agentTool, asAgent, carryLast, carryWords, handoff, hub } from './index.js';

const to = (name: string): ModelChunk => toolCall(`transfer_to_${name}`, { reason: 'r' });

const noted = (name: string, output = `${name} returned`) =>
  tool({ name, description: `Does ${name}.`, run: () => output });

const member = (agent: Agent) => ({ agent, description: `Is ${agent.name}.` });

const readBy = (model: ScriptedModel, nth = 0): string =>
  (model.requests[nth]?.messages ?? []).map(textOf).join(' | ');

const short = ({ toolCalls }: Reply) =>
  toolCalls.map(({ agent = '-', name }) => `${agent} ${name}`);

/** One tool call of a plan: what it does, and after how long. */
type Work = readonly [kind: 'work' | 'fail' | 'deny' | 'unknown' | 'wrong', ms: number];

interface Leaf {
  readonly kind: 'leaf';
  readonly turns: readonly (readonly Work[])[];
}

type Plan =
  | Leaf
  | { readonly kind: 'sequential' | 'parallel' | 'nested'; readonly parts: readonly Plan[] }
  | { readonly kind: 'race'; readonly parts: readonly Leaf[]; readonly fails: boolean }
  | { readonly kind: 'hub'; readonly parts: readonly Leaf[] }
  | { readonly kind: 'handoff'; readonly parts: readonly Leaf[]; readonly extra: readonly Extra[] };

/** What goes wrong with a transfer. */
type Extra = 'none' | 'wrong' | 'twice' | 'alone';

interface Effect {
  readonly agent: string;
  readonly n: number;
}

const works: fc.Arbitrary<Work> = fc.tuple(
  fc.constantFrom('work', 'work', 'fail', 'deny', 'unknown', 'wrong'),
  fc.integer({ min: 0, max: 5 }),
);

const leaves: fc.Arbitrary<Leaf> = fc.record({
  kind: fc.constant('leaf' as const),
  turns: fc.array(fc.array(works, { minLength: 1, maxLength: 3 }), { maxLength: 2 }),
});

const some = <T>(of: fc.Arbitrary<T>) => fc.array(of, { minLength: 1, maxLength: 3 });

const plans = fc.letrec<{ plan: Plan }>((tie) => ({
  plan: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    leaves,
    fc.record({
      kind: fc.constantFrom('sequential' as const, 'parallel' as const, 'nested' as const),
      parts: some(tie('plan')),
    }),
    fc.record({ kind: fc.constant('race' as const), parts: some(leaves), fails: fc.boolean() }),
    fc.record({ kind: fc.constant('hub' as const), parts: some(leaves) }),
    fc.record({
      kind: fc.constant('handoff' as const),
      parts: some(leaves),
      extra: some(fc.constantFrom<Extra>('none', 'wrong', 'twice', 'alone')),
    }),
  ),
})).plan;

/** Builds the team of a plan, and counts what its tools do and what the next agent of a handoff has not read. */
const built = (plan: Plan) => {
  const effects: Effect[] = [];
  const unread: string[] = [];
  let names = 0;
  let last = 0;
  const agentOf = (
    { turns }: Leaf,
    end: (before: readonly ModelChunk[]) => readonly ScriptedAnswer[],
    read: (all: string) => void = () => undefined,
  ): Agent => {
    const name = `agent${(names += 1)}`;
    const tools = (['work', 'fail', 'deny'] as const).map((kind) => {
      const own = tool({
        name: kind,
        description: kind,
        input: jsonSchema({
          type: 'object',
          properties: { n: { type: 'integer' }, ms: { type: 'integer' } },
          required: ['n', 'ms'],
        }),
        run: ({ n, ms }, { scheduler }) =>
          timer(ms, scheduler).pipe(
            map(() => {
              effects.push({ agent: name, n });
              if (kind === 'fail') throw new Error(`fault ${n}`);
              return `effect ${n}`;
            }),
          ),
      });
      return kind === 'deny' ? requireApproval(own, () => ({ approved: false })) : own;
    });
    const asks = ([kind, ms]: Work): ModelChunk => {
      last += 1;
      if (kind === 'wrong') return toolCall('work', { n: `${last}` });
      return toolCall(kind === 'unknown' ? 'nothing' : kind, { n: last, ms });
    };
    const messages = turns.map((turn) => turn.map(asks));
    const script = [...messages.slice(0, -1), ...end(messages.at(-1) ?? [])];
    const model = scriptedModel(
      ...script.map((answer, index): ScriptedAnswer => (request, context) => {
        if (index === 0) read(request.messages.map(textOf).join('\n'));
        return typeof answer === 'function' ? answer(request, context) : answer;
      }),
    );
    return createAgent({ name, model, tools, limits: { toolBackoffMs: 0, maxIterations: 20 } });
  };
  const plain = (leaf: Leaf): Agent =>
    agentOf(leaf, (before) => [...(before.length === 0 ? [] : [before]), [text('Done.')]]);
  const broken = (leaf: Leaf): Agent =>
    agentOf(leaf, (before) => [
      ...(before.length === 0 ? [] : [before]),
      () => throwError(() => new Error('broken')),
    ]);
  const handoffOf = (parts: readonly Leaf[], extra: readonly Extra[]): Agent => {
    const start = names;
    const members = new Set<string>();
    let from = 0;
    const agents = parts.map((leaf, index) => {
      const how = extra[index % extra.length] ?? 'none';
      const transfer = to(`agent${start + index + 2}`);
      const wrong = toolCall(`transfer_to_agent${start + index + 2}`, { reason: 5 });
      const others = how === 'twice' ? [to(`agent${start + 1}`)] : [];
      const end = (before: readonly ModelChunk[]): readonly ScriptedAnswer[] => {
        if (index === parts.length - 1)
          return [...(before.length ? [before] : []), [text('Done.')]];
        if (how === 'wrong') return [[...before, wrong], [transfer]];
        if (how === 'alone' && before.length > 0) return [before, [transfer]];
        return [[...before, transfer, ...others]];
      };
      return agentOf(leaf, end, (all) => {
        if (index === 0) from = effects.length;
        for (const { agent, n } of effects.slice(from))
          if (members.has(agent) && !all.includes(`"n":${n},`)) unread.push(`${n}`);
      });
    });
    // Agents beside this team run at the same time.
    for (const { name } of agents) members.add(name);
    return handoff({ name: `desk${(names += 1)}`, agents: agents.map(member) });
  };
  const stepOf = (it: Plan): Agent => {
    const name = () => ({ name: `team${(names += 1)}` });
    switch (it.kind) {
      case 'leaf':
        return plain(it);
      case 'race': {
        const [first = plain({ kind: 'leaf', turns: [] }), ...rest] = it.parts.map(plain);
        const failing = it.fails ? [broken({ kind: 'leaf', turns: [[['work', 0]]] })] : [];
        return asAgent(race(first, ...rest, ...failing), name());
      }
      case 'hub': {
        const [first = plain({ kind: 'leaf', turns: [] }), ...rest] = it.parts.map(plain);
        return asAgent(hub({ agents: [first, ...rest] }), name());
      }
      case 'handoff':
        return handoffOf(it.parts, it.extra);
      default: {
        const [first = plain({ kind: 'leaf', turns: [] }), ...rest] = it.parts.map(stepOf);
        if (it.kind === 'nested') return asAgent(asAgent(first, name()), name());
        return it.kind === 'sequential'
          ? asAgent(sequential(first, ...rest), name())
          : asAgent(parallel(first, ...rest), name());
      }
    }
  };
  const team = asAgent(stepOf(plan), { name: 'root' });
  return { team, effects, unread };
};

const working: Leaf = { kind: 'leaf', turns: [[['work', 0]]] };
const silent: Leaf = { kind: 'leaf', turns: [] };

/** A tool of another agent ends while a handoff starts. */
const besideHandoff: Plan = {
  kind: 'parallel',
  parts: [
    { kind: 'sequential', parts: [working, silent] },
    { kind: 'handoff', parts: [working, silent], extra: ['none'] },
  ],
};

const numberOf = ({ input }: ToolRun): number => Number(input['n']);

describe('the tool calls of a team', () => {
  it('G5: the next agent reads of a tool beside a handoff, and all tool calls are in the reply', async () => {
    const bob = scriptedModel([toolCall('note')], [text('Bob here.')]);
    const desk = handoff({
      agents: [
        member(
          createAgent({
            name: 'ann',
            model: scriptedModel([toolCall('add'), to('bob')]),
            tools: [noted('add', '12')],
          }),
        ),
        member(createAgent({ name: 'bob', model: bob, tools: [noted('note')] })),
      ],
    });
    const reply = await desk.call('What is 5 + 7, and may I speak to Bob?');
    expect(short(reply)).toEqual(['ann add', 'ann transfer_to_bob', 'bob note']);
    expect(reply.toolCalls[0]).toMatchObject({ name: 'add', output: '12', isError: false });
    expect(readBy(bob)).toContain('I called add({}), which returned:\n> 12');
  });

  it('G5: what a random team did is reported once and in order, and the next agent reads it', () => {
    fc.assert(
      fc.property(
        plans,
        fc.option(fc.integer({ min: 0, max: 30 }), { nil: undefined }),
        fc.boolean(),
        (plan, interruptAt, streams) => {
          const { team, effects, unread } = built(plan);
          const scheduler = new VirtualTimeScheduler();
          const use = interruptAt === undefined ? [] : [interruptOn(timer(interruptAt, scheduler))];
          const replies: Reply[] = [];
          const reply$ = streams
            ? team.stream$('?', { scheduler, use, callId: 'c' }).pipe(
                filter((event) => event.type === 'postCall' && event.callId === 'c'),
                map((event) => (event.type === 'postCall' ? event.reply : undefined)),
              )
            : team.call$('?', { scheduler, use });
          reply$.subscribe((reply) => reply && replies.push(reply));
          scheduler.flush();
          const [reply] = replies;
          const runs = (reply?.toolCalls ?? []).filter(({ name }) => !name.startsWith('transfer_'));
          const told = runs.filter(({ output }) => /effect|fault/.test(output));
          const key = ({ agent, n }: Effect): string => `${agent} ${n}`;
          expect(
            told.map((run) => key({ agent: run.agent ?? '', n: numberOf(run) })).sort(),
          ).toEqual(effects.map(key).sort());
          for (const agent of new Set(runs.map((run) => run.agent))) {
            const own = runs.filter((run) => run.agent === agent).map(numberOf);
            expect(own).toEqual([...new Set(own)].sort((a, b) => a - b));
          }
          expect(unread).toEqual([]);
        },
      ),
      { numRuns: 400, examples: [[besideHandoff, undefined, false]] },
    );
  });

  it('G5: the next agent reads of a denied tool and a failed one beside a handoff, with their results', async () => {
    const bob = scriptedModel([text('Bob here.')]);
    const ann = createAgent({
      name: 'ann',
      model: scriptedModel([toolCall('pay'), to('bob'), toolCall('break')]),
      tools: [
        requireApproval(noted('pay'), () => ({ approved: false, reason: 'Too much.' })),
        tool({
          name: 'break',
          description: 'Breaks.',
          run: () => {
            throw new Error('It broke.');
          },
        }),
      ],
    });
    const desk = handoff({ agents: [ann, createAgent({ name: 'bob', model: bob })].map(member) });
    const reply = await desk.call('?');
    expect(reply.toolCalls.map(({ name, isError }) => [name, isError])).toEqual([
      ['pay', true],
      ['transfer_to_bob', false],
      ['break', true],
    ]);
    expect(readBy(bob)).toContain('I called pay({}), which failed:\n> Not run: this call to pay');
    expect(readBy(bob)).toContain('I called break({}), which failed:\n> Failed: It broke.');
  });

  it('G5: a denied handoff does not hand over, and both are in the reply', async () => {
    const bob = scriptedModel([text('Bob here.')]);
    const ann = createAgent({
      name: 'ann',
      model: scriptedModel([toolCall('add'), to('bob')], [text('I stay.')]),
      tools: [noted('add')],
      use: [
        on(
          'preActing',
          filter(({ toolCall: { name } }) => name !== 'transfer_to_bob'),
        ),
      ],
    });
    const desk = handoff({ agents: [ann, createAgent({ name: 'bob', model: bob })].map(member) });
    const reply = await desk.call('?');
    expect([reply.text, bob.requests.length]).toEqual(['I stay.', 0]);
    expect(short(reply)).toEqual(['ann add', 'ann transfer_to_bob']);
  });

  it('G5: carryWords leaves the tools out, carryLast has those after the last question', async () => {
    const read = async (choice: typeof carryLast) => {
      const bob = scriptedModel([text('Bob here.')]);
      const ann = createAgent({
        name: 'ann',
        model: scriptedModel([text('Hm.'), toolCall('add'), to('bob')]),
        tools: [noted('add')],
      });
      const agents = [ann, createAgent({ name: 'bob', model: bob })].map(member);
      await handoff({ agents, filter: choice }).call('?');
      return readBy(bob);
    };
    expect(await read(carryWords)).toBe('? | Hm. | I am handing over to bob. r');
    expect(await read(carryLast)).toMatch(
      /^\? \| Hm\. \| Tools that I called\.[^]*\n\nI called add\({}\), which returned:\n> add returned \| I am handing over to bob\. r$/,
    );
  });

  it('G5: a text protocol shows it to the next agent, too', async () => {
    const steps =
      'Both.\n[{"name": "add", "arguments": {}}, {"name": "transfer_to_bob", "arguments": {"reason": "r"}}]';
    const bob = scriptedModel([text('Bob here.')]);
    const ann = createAgent({
      name: 'ann',
      model: textTools(scriptedModel([text(steps)]), stepsDialect()),
      tools: [noted('add', '12')],
    });
    const desk = handoff({ agents: [ann, createAgent({ name: 'bob', model: bob })].map(member) });
    const reply = await desk.call('?');
    expect(short(reply)).toEqual(['ann add', 'ann transfer_to_bob']);
    expect(readBy(bob)).toContain('which returned:\n> 12');
  });

  it('G5, T13: a tool that waits beside a handoff: the handoff follows its result, and nothing runs twice', async () => {
    let ran = 0;
    const add = tool({ name: 'add', description: 'Adds.', run: () => `${(ran += 1)}` });
    const ask = tool({ name: 'ask', description: 'Asks.', run: () => suspend('How many?') });
    const bob = scriptedModel([toolCall('note')], [text('Bob here.')]);
    const team = handoff({
      use: [journalIn(inProcessCalls()), suspendBelow],
      agents: [
        member(
          createAgent({
            name: 'ann',
            model: scriptedModel([toolCall('add'), to('bob'), toolCall('ask')]),
            tools: [add, ask],
          }),
        ),
        member(createAgent({ name: 'bob', model: bob, tools: [noted('note')] })),
      ],
    });
    const session = sessions(team).open('s');
    const waits = await session.call('?');
    expect([waits.reason, ...short(waits)]).toEqual([
      'suspended',
      'ann add',
      'ann transfer_to_bob',
      'ann ask',
    ]);
    const [asked] = waits.suspensions ?? [];
    const reply = await session.call(toolResults({ [asked?.toolCall.id ?? '']: 'Twelve.' }));
    expect([reply.text, ran]).toEqual(['Bob here.', 1]);
    expect(short(reply)).toEqual(['ann add', 'ann transfer_to_bob', 'ann ask', 'bob note']);
    expect(readBy(bob)).toContain('I called add({}), which returned:\n> 1');
    expect(readBy(bob)).toContain('I called ask({}), which returned:\n> Twelve.');
  });

  it('G5, S7: a resumed call has the tool calls from before', async () => {
    const calls = inProcessCalls();
    const durable = journalIn(calls);
    let ran = 0;
    const add = tool({ name: 'add', description: 'Adds.', run: () => `${(ran += 1)}` });
    const teamOf = (answer: ScriptedAnswer) =>
      asAgent(
        sequential(
          createAgent({
            name: 'a',
            model: scriptedModel([toolCall('add')], [text('One.')]),
            tools: [add],
          }),
          createAgent({ name: 'b', model: scriptedModel(answer) }),
        ),
        { name: 'team', use: [durable] },
      );
    const broken: ScriptedAnswer = () => throwError(() => new Error('down'));
    await teamOf(broken)
      .call('?', { callId: 'c' })
      .catch(() => undefined);
    const reply = await lastValueFrom(durable.resume$(teamOf([text('Two.')]), 'c'));
    expect([reply.text, ran]).toEqual(['Two.', 1]);
    expect(short(reply)).toEqual(['a add']);
  });

  it('G5: the tools of a step that failed or lost a race are in the reply, also in that of a fallback', async () => {
    const broken = createAgent({
      name: 'broken',
      model: scriptedModel([toolCall('add')], () => throwError(() => new Error('down'))),
      tools: [noted('add')],
    });
    const well = createAgent({ name: 'well', model: scriptedModel([text('Well.')]) });
    const team = asAgent(race(broken, well), { name: 'team' });
    expect(short(await team.call('?'))).toEqual(['broken add']);
    const fallback: Layer = {
      name: 'fallback',
      call: (context) => (next) => (call) =>
        next(call).pipe(catchError(() => answerWith(context, call, 'Sorry.'))),
    };
    const again = createAgent({
      name: 'again',
      model: scriptedModel([toolCall('add')], () => throwError(() => new Error('down'))),
      tools: [noted('add')],
    });
    const sorry = await asAgent(sequential(again), { name: 'team', use: [fallback] }).call('?');
    expect([sorry.text, ...short(sorry)]).toEqual(['Sorry.', 'again add']);
  });

  it('G5: tool calls of an agent in a tool stay in the result of that tool, even if its caller fails', async () => {
    const lead = (end: ScriptedAnswer) => {
      const worker = createAgent({
        name: 'worker',
        model: scriptedModel([toolCall('add')], [text('12')]),
        tools: [noted('add')],
      });
      return createAgent({
        name: 'lead',
        model: scriptedModel([toolCall('worker', { user_prompt: 'Add.' })], end),
        tools: [agentTool(worker, { description: 'Works.' })],
      });
    };
    const broken = lead(() => throwError(() => new Error('down')));
    const team = asAgent(race(broken, lead([text('12.')])), { name: 'team' });
    expect(short(await team.call('?'))).toEqual(['lead worker', 'lead worker']);
  });

  it('G5: an edit of the reply of a member counts', async () => {
    const hides = on(
      'postCall',
      map((event) => ({
        ...event,
        reply: {
          ...event.reply,
          toolCalls: event.reply.toolCalls.map((run) => ({ ...run, output: '-' })),
        },
      })),
    );
    const agent = createAgent({
      name: 'a',
      model: scriptedModel([toolCall('add')], [text('Done.')]),
      tools: [noted('add')],
      use: [hides],
    });
    const reply = await asAgent(sequential(agent), { name: 'team' }).call('?');
    expect(reply.toolCalls.map(({ output }) => output)).toEqual(['-']);
  });
});
