import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, map, NEVER, type Observable, timer } from 'rxjs';
import { createAgent, inProcessMemory, interruptOn } from '../../index.js';
import { withPlan } from '../planning/index.js';
import {
  marbles,
  record,
  type ScriptedAnswer,
  scriptedModel,
  text,
  toolCall,
} from '../../testing/index.js';
import type { LongTermMemoryOptions } from './memory-settings.js';
import { withLongTermMemory } from './index.js';
import {
  faulty,
  forAnn,
  heldOf,
  remembering,
  shownTo,
  warningsIn,
} from './memories.test-support.js';
import { sessions } from '../sessions/index.js';
import { journal } from '../../journal/index.js';

const create = toolCall('create_plan', { goal: 'Bread.', steps: ['Mill', 'Bake', 'Eat'] });
const update = (step: number, status: string) => toolCall('update_step', { step, status });
const memories = () =>
  remembering('The mill is by the sea.', 'Bake at 220 degrees.', 'Likes bread.');

const steps: readonly ScriptedAnswer[] = [
  [create],
  [update(1, 'in progress')],
  [update(1, 'done'), update(2, 'in progress')],
  [update(2, 'done')],
  [text('Done.')],
];

/** What each request shows of what was recalled for the step. */
const notesIn = (model: ReturnType<typeof scriptedModel>): readonly (string | undefined)[] =>
  model.requests.map(
    (_, at) =>
      /\[Recalled Memories for the Step in Progress\]\n.*\n\n.*\n> (?<said>.*)/u.exec(
        shownTo(model, at).join('\n\n'),
      )?.groups?.['said'],
  );

const run = async (
  more: Partial<LongTermMemoryOptions> = {},
  isFirst = false,
  asked = 'Make a loaf.',
) => {
  const memory = memories();
  const conversations = inProcessMemory();
  const model = scriptedModel(...steps);
  const plain = { model };
  const settings = { memory, ...more };
  const options = isFirst
    ? withPlan(withLongTermMemory(plain, settings))
    : withLongTermMemory(withPlan(plain), settings);
  const events = await record(
    sessions(createAgent(options), { memory: conversations }).open('s').stream$(asked, forAnn),
  );
  const stored = await lastValueFrom(conversations('s').load$());
  return { model, memory, events, stored: JSON.stringify(stored) };
};

describe('withLongTermMemory, of the steps of a plan', () => {
  it.each([false, true])(
    'G3: recalls for the step that is in progress, and shows it until another is (%s)',
    async (isFirst) => {
      const { model, stored, memory } = await run({}, isFirst);
      expect(notesIn(model)).toEqual([
        undefined,
        undefined,
        'The mill is by the sea.',
        'Bake at 220 degrees.',
        undefined,
      ]);
      expect(stored).not.toMatch(/by the sea|220 degrees|Likes bread/u);
      const held = await heldOf(memory);
      expect(held.filter((it) => it.includes('by the sea'))).toHaveLength(1);
      expect(held).toHaveLength(4);
    },
  );

  it('G3: does not show again what is shown already, and adds what comes after it', async () => {
    const memory = remembering('Bake at 200.', 'Bake at 210.', 'Bake at 220.', 'Bake it long.');
    const model = scriptedModel([create], [update(2, 'in progress')], [text('Done.')]);
    const agent = createAgent(withLongTermMemory(withPlan({ model }), { memory, top: 2 }));
    const events = await record(agent.stream$('Bake it.', forAnn));
    const shown = events.flatMap((event) =>
      event.type === 'recalled' ? [event.memories.map((it) => it.text)] : [],
    );
    expect(shown).toHaveLength(2);
    expect(shown.map((texts) => texts.length)).toEqual([2, 2]);
    expect(new Set(shown.flat()).size).toBe(4);
    const all = shownTo(model, 2).join('\n');
    for (const said of shown.flat()) expect(all.split(said)).toHaveLength(2);
  });

  it('G3: finds nothing for a step where all of it is shown', async () => {
    const { model, events } = await run({}, false, 'Mill and bake bread.');
    expect(notesIn(model)).toEqual(Array(5).fill(undefined));
    expect(events.filter(({ type }) => type === 'recalled')).toHaveLength(1);
  });

  it('G3: what another session is shown does not count', async () => {
    const memory = remembering('The mill is by the sea.');
    const model = scriptedModel([text('Yes.')], [create], [update(1, 'in progress')], [text('.')]);
    const agent = createAgent(withLongTermMemory(withPlan({ model }), { memory }));
    await sessions(agent).open('one').call('Is there a mill?', forAnn);
    await sessions(agent).open('two').call('Make a loaf.', forAnn);
    expect(notesIn(model).at(-1)).toBe('The mill is by the sea.');
  });

  it('G3: does not without the option, and in the mode agent', async () => {
    for (const more of [{ recallForSteps: false }, { mode: 'agent' }] as const) {
      expect(notesIn((await run(more)).model)).toEqual(Array(5).fill(undefined));
    }
  });

  it('G3: the model ranks for the goal and the step', async () => {
    const memory = remembering('mill one', 'mill two', 'mill three');
    const model = scriptedModel(
      [text('[3]')],
      [create],
      [update(1, 'in progress')],
      [text('[2]')],
      [text('Done.')],
    );
    const options = withLongTermMemory(withPlan({ model }), { memory, rank: true, top: 1 });
    const reply = await createAgent(options).call('Bake bread at the mill.', forAnn);
    const [asked] = shownTo(model, 3);
    expect(asked?.split('\n\n').slice(0, 2)).toEqual([
      'The task:\n> Bake bread at the mill.',
      'The step in progress:\n> Mill',
    ]);
    expect(notesIn(model).at(-1)).toBe('mill two');
    expect(shownTo(model, 4)[0]).toMatch(/> mill one$/u);
    expect(reply.usageByPhase).toHaveProperty('rankMemories');
    expect(reply.iterations).toBe(3);
  });

  it('G3: a memory that fails is a warning each time, and the call continues', async () => {
    const recall$ = () => {
      throw new Error('down');
    };
    const { events, model } = await run({ memory: faulty({ recall$ }) });
    expect(warningsIn(events)).toHaveLength(3);
    expect(notesIn(model)).toEqual(Array(5).fill(undefined));
  });

  it('S6: is a step of the journal for each', async () => {
    const ids: string[] = [];
    const durable = journal((id, work) => {
      ids.push(id);
      return work();
    });
    const model = scriptedModel(...steps);
    const one = withLongTermMemory(withPlan({ model, use: [durable] }), { memory: memories() });
    const two = withLongTermMemory(one, { memory: memories() });
    await createAgent(two).call('Bake.', { ...forAnn, callId: 'c' });
    expect(ids.filter((id) => /\d\/recallMemories/u.test(id))).toEqual([
      'c/2/recallMemories',
      'c/2/recallMemories/2',
      'c/3/recallMemories',
      'c/3/recallMemories/2',
    ]);
    expect(new Set(ids).size).toBe(ids.length);
    expect(shownTo(model, 2).join()).toContain('for the Step in Progress 2]');
  });

  const hanging = (recall$: Observable<never>) => {
    const inner = memories();
    return {
      ...inner,
      recall$: (...given: Parameters<typeof inner.recall$>) =>
        given[1].text === 'Mill' ? recall$ : inner.recall$(...given),
    };
  };

  it('I5: leaves the memory in the tick in which the call is left', () => {
    marbles(({ scheduler, cold, expectObservable, expectSubscriptions }) => {
      const recall$ = cold<never>('-');
      const model = scriptedModel([create], [update(1, 'in progress')], NEVER);
      const options = withLongTermMemory(withPlan({ model }), { memory: hanging(recall$) });
      const reply$ = createAgent(options).call$('Bake.', { ...forAnn, scheduler });
      expectObservable(reply$, '^----!').toBe('-');
      expectSubscriptions(recall$.subscriptions).toBe('^----!');
    });
  });

  it('S1: an interrupt ends the wait for the memory', () => {
    marbles(({ scheduler, cold, expectObservable, expectSubscriptions }) => {
      const recall$ = cold<never>('-');
      const model = scriptedModel([create], [update(1, 'in progress')], NEVER);
      const options = withLongTermMemory(withPlan({ model }), { memory: hanging(recall$) });
      const stop$ = timer(3, scheduler);
      const reply$ = createAgent(options).call$('Bake.', {
        ...forAnn,
        scheduler,
        use: [interruptOn(stop$)],
      });
      expectObservable(reply$.pipe(map(({ reason }) => reason))).toBe('---(i|)', {
        i: 'interrupted',
      });
      expectSubscriptions(recall$.subscriptions).toBe('^--!');
    });
  });
});
