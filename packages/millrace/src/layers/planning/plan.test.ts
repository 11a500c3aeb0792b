import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { applyPatches, enablePatches } from 'immer';
import { filter, map } from 'rxjs';
import { createAgent, type Interceptor, on, textOf } from '../../index.js';
import { record, type ScriptedAnswer, scriptedModel, text, toolCall } from '../../testing/index.js';
import { changePlan, type PlanChange } from './plan-state.js';
import { completeTask, isPlan, type Plan, planText, withPlan } from './index.js';
import { createPlanTools } from './plan.js';
import { sessions } from '../sessions/index.js';

enablePatches();

const create = (...steps: readonly string[]) => toolCall('create_plan', { goal: 'Bread.', steps });
const update = (step: unknown, status: unknown, outcome?: string) =>
  toolCall('update_step', { step, status, ...(outcome !== undefined && { outcome }) });

const run = async (...answers: readonly ScriptedAnswer[]) => {
  const model = scriptedModel(...answers, [text('Done.')]);
  const agent = createAgent(withPlan({ model }));
  const events = await record(agent.stream$('Bake.'));
  const changes = events.flatMap((event) => (event.type === 'stateChanged' ? [event] : []));
  return { model, events, changes };
};

describe('the plan of a call', () => {
  it('G1, S5: is reported by events, which make each state from the one before', async () => {
    const { changes } = await run(
      [create('Mill', 'Knead', 'Bake')],
      [update(1, 'in progress')],
      [update(1, 'done', 'Flour\nis there.'), update(2, 'abandoned', 'No yeast.')],
      [toolCall('revise_plan', { steps: ['Bake', 'Eat'] })],
    );
    expect(changes.map(({ name, iteration }) => [name, iteration])).toEqual([
      ['plan', 1],
      ['plan', 2],
      ['plan', 3],
      ['plan', 4],
    ]);
    expect(
      changes.map(({ state }) => (isPlan(state) ? planText(state).split('\n').slice(1) : [])),
    ).toEqual([
      ['1. [todo] Mill', '2. [todo] Knead', '3. [todo] Bake'],
      ['1. [in progress] Mill', '2. [todo] Knead', '3. [todo] Bake'],
      ['1. [done] Mill (Flour is there.)', '2. [abandoned] Knead (No yeast.)', '3. [todo] Bake'],
      [
        '1. [done] Mill (Flour is there.)',
        '2. [abandoned] Knead (No yeast.)',
        '3. [todo] Bake',
        '4. [todo] Eat',
      ],
    ]);
    let rebuilt: unknown = {};
    for (const { state, patches } of changes) {
      rebuilt = applyPatches(rebuilt as object, patches as never);
      expect(rebuilt).toEqual(state);
    }
  });

  it('G1: is shown in every request as it stands, once', async () => {
    const { model } = await run([create('Mill', 'Bake')], [update(1, 'done')]);
    const plans = model.requests.map(({ messages }) =>
      messages.map(textOf).filter((it) => it.startsWith('[Plan]')),
    );
    expect(plans.map((all) => all.map((it) => it.split('\n').slice(2)))).toEqual([
      [],
      [['Goal: Bread.', '1. [todo] Mill', '2. [todo] Bake']],
      [['Goal: Bread.', '1. [done] Mill', '2. [todo] Bake']],
    ]);
  });

  it('T5: what cannot be is an observation, and changes nothing', async () => {
    const { changes, events } = await run(
      [update(1, 'done')],
      [create()],
      [create('Mill')],
      [update(2, 'done'), update(1, 'finished')],
      [toolCall('revise_plan', { steps: [' '] })],
    );
    expect(changes).toHaveLength(1);
    const told = events.flatMap((event) =>
      event.type === 'postActing' && event.result.isError ? [textOf(event.result)] : [],
    );
    expect(told).toEqual([
      'There is no plan yet: use create_plan first.',
      'A plan needs at least one step.',
      'There is no step 2: the plan has steps 1 to 1.',
      expect.stringContaining('status'),
      'A plan needs at least one step.',
    ]);
  });

  it('T3: uses of one message follow one another', async () => {
    const { changes, events } = await run([
      toolCall('create_plan', { goal: 'Bread.', steps: ['Mill'] }),
      update(1, 'done'),
    ]);
    expect(changes).toMatchObject([{ state: { steps: [{ status: 'done' }] } }]);
    const results = events.flatMap((event) =>
      event.type === 'postActing' ? [textOf(event.result)] : [],
    );
    expect(results).toEqual([
      'Steps of the plan: 1. To be done: 1.',
      'All steps of the plan are done or abandoned.',
    ]);
  });

  it('S5: reports also what the last turn has changed', async () => {
    const model = scriptedModel(
      [create('Mill')],
      [update(1, 'done'), toolCall('complete_task', { answer: 'Milled.' })],
    );
    const agent = createAgent(withPlan({ model, tools: [completeTask()] }));
    const events = await record(agent.stream$('?'));
    const changes = events.filter(({ type }) => type === 'stateChanged');
    expect(changes).toMatchObject([{}, { state: { steps: [{ status: 'done' }] } }]);
  });

  it('S3: continues in the next call of its session, and in no other', async () => {
    const model = scriptedModel(
      [create('Mill', 'Bake')],
      [text('Planned.')],
      [update(1, 'done')],
      [text('Milled.')],
      [update(1, 'done')],
      [text('What?')],
    );
    const agent = createAgent(withPlan({ model }));
    await sessions(agent).open('s').call('Plan it.');
    await sessions(agent).open('s').call('Go on.');
    const reply = await sessions(agent).open('t').call('Go on.');
    expect(model.requests[2]?.messages.map(textOf).at(-1)).toContain('1. [todo] Mill');
    expect(model.requests[3]?.messages.map(textOf).at(-1)).toContain('1. [done] Mill');
    expect(reply.toolCalls).toMatchObject([{ isError: true }]);
  });

  it('S5: is reported once if a call continues it, and not at all if it is settled', async () => {
    const model = scriptedModel(
      [create('Mill', 'Bake')],
      [update(1, 'done')],
      [text('1')],
      [text('2')],
      [update(2, 'done')],
      [text('3')],
      [text('4')],
    );
    const session = sessions(createAgent(withPlan({ model }))).open('s');
    const changesOf = async () =>
      (await record(session.stream$('?'))).flatMap((event) =>
        event.type === 'stateChanged' ? [event.patches.map(({ path }) => path.join('/'))] : [],
      );
    expect(await changesOf()).toEqual([[''], ['steps/0/status']]);
    expect(await changesOf()).toEqual([['']]);
    expect(await changesOf()).toEqual([[''], ['steps/1/status']]);
    expect(await changesOf()).toEqual([]);
    expect(JSON.stringify(model.requests.at(-1)?.messages)).not.toContain('[Plan]');
  });

  it('I11, H2: what interceptors veto or edit is what the next use sees', async () => {
    const run1 = async (...interceptors: readonly Interceptor[]) => {
      const model = scriptedModel([create('Mill', 'Bake'), update(2, 'done')], [text('Done.')]);
      const reply = await createAgent(withPlan({ model, use: interceptors })).call('?');
      return reply.toolCalls.map(({ isError, output }) => (isError ? output : 'fine'));
    };
    const isCreate = ({ toolCall: { name } }: { readonly toolCall: { readonly name: string } }) =>
      name === 'create_plan';
    expect(
      await run1(
        on(
          'preActing',
          filter((event) => !isCreate(event)),
        ),
      ),
    ).toEqual([
      expect.stringContaining('rejected'),
      'There is no plan yet: use create_plan first.',
    ]);
    const shorter = on(
      'preActing',
      map((event) =>
        isCreate(event)
          ? { ...event, toolCall: { ...event.toolCall, input: { goal: 'G', steps: ['Mill'] } } }
          : event,
      ),
    );
    expect(await run1(shorter)).toEqual(['fine', 'There is no step 2: the plan has steps 1 to 1.']);
  });

  it('G1: without its phase nothing is planned, and the tools report it', async () => {
    const model = scriptedModel([update(1, 'done')], [text('Well.')]);
    const reply = await createAgent({ model, tools: createPlanTools() }).call('?');
    expect(reply.toolCalls).toMatchObject([{ isError: true }]);
    expect(() => withPlan({ model }, { prompt: 1 as never })).toThrow(/'prompt' must be/);
  });

  const anything = fc.oneof(fc.anything(), fc.constantFrom('done', 'todo', ['a', 'b'], 1, 2));
  const use = fc.record({
    name: fc.constantFrom('create_plan', 'update_step', 'revise_plan'),
    input: fc.oneof(
      fc.record({ goal: fc.string(), steps: fc.array(fc.string(), { maxLength: 60 }) }),
      fc.record({
        step: fc.integer({ min: -1, max: 5 }),
        status: fc.constantFrom('done', 'todo', 'abandoned', 'x'),
      }),
      fc.dictionary(fc.string(), anything),
      fc.constant(
        JSON.parse('{"__proto__": {"polluted": true}, "steps": ["__proto__"]}') as object,
      ),
    ),
  });

  it('X15, S5: for any answer of a model, a plan is a plan, and its patches lead to it', () => {
    fc.assert(
      fc.property(fc.array(use, { maxLength: 8 }), (uses) => {
        let plan: Plan | undefined;
        for (const each of uses) {
          const change: PlanChange = changePlan(plan, each as never);
          if ('problem' in change) continue;
          expect(applyPatches(plan ?? {}, change.patches as never)).toEqual(change.plan);
          plan = change.plan;
          expect(isPlan(plan)).toBe(true);
          expect(plan.steps.length).toBeLessThanOrEqual(50);
          expect(
            planText(plan)
              .split('\n')
              .filter((line) => /^\d+\. \[/.test(line)).length,
          ).toBe(plan.steps.length);
        }
        expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
      }),
    );
  });
});
