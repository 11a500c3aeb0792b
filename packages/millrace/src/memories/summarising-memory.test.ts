import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { finalize, map, NEVER, throwError } from 'rxjs';
import { createAgent } from '../agent.js';
import { inProcessMemory, type MemoryFactory } from './in-process-memory.js';
import type { Memory } from '../values/memory.js';
import { type Message, textOf } from '../values/message.js';
import type { Model } from '../models/model.js';
import { unpaired } from '../values/pairing.js';
import { memoryContract } from '../testing/memory-contract.js';
import {
  finish,
  marbles,
  type ScriptedModel,
  scriptedModel,
  text,
  toolCall,
} from '../testing/index.js';
import { withResults } from './suspend.js';
import {
  add,
  answer,
  appendsOf,
  exchange,
  held,
  idsOf,
  someTurns,
  user,
} from './conversations.test-support.js';
import { summarisingMemory, type SummarisingMemoryOptions } from './summarising-memory.js';
import { turnStarts } from './transcript.js';
import { sessions } from '../layers/sessions/index.js';

/** Writes what it was asked, one request after the other. */
const writer = (): ScriptedModel =>
  scriptedModel(...Array.from({ length: 50 }, (_, index) => [text(` Notes ${index + 1}. `)]));

const told = (model: ScriptedModel, index: number): string => {
  const [message] = model.requests[index]?.messages ?? [];
  return message === undefined ? '' : textOf(message);
};

const say = (memory: Memory, ...calls: readonly string[]): void => {
  calls.forEach((call) => {
    add(
      memory,
      user(`${call}/input/0`, `${call}?`),
      ...exchange(`${call}/1`),
      answer(`${call}/2`, 'and so on '.repeat(80)),
    );
  });
};

const set = (
  options: Partial<SummarisingMemoryOptions>,
  inner: MemoryFactory = inProcessMemory(),
) => {
  const model = writer();
  const warnings: string[] = [];
  const report = (warning: string): void => void warnings.push(warning);
  const factory = summarisingMemory(inner, {
    model,
    whenTokens: 800,
    keepTurns: 2,
    report,
    ...options,
  });
  return { model, factory, warnings, memory: factory('s') };
};

describe('summarisingMemory', () => {
  for (const { name, run } of memoryContract(() => set({ whenTokens: 8_000 }).factory)) {
    it(`G2: ${name}`, run);
  }

  it('G2: gives a short conversation as it is, and makes no request', () => {
    const { model, memory } = set({});
    say(memory, 'a');
    expect(idsOf(held(memory))).toEqual(['a/input/0', 'a/1', 'a/1/results', 'a/2']);
    expect(model.requests).toEqual([]);
  });

  it('G2: gives a summary of older turns, marked as such, and the last ones as they are', () => {
    const inner = inProcessMemory();
    const { model, memory } = set({ maxTokens: 500 }, inner);
    say(memory, 'a', 'b', 'c', 'd');
    const [summary, ...rest] = held(memory);
    expect(summary).toEqual({
      id: 'summary/b/2',
      role: 'user',
      content: [{ type: 'text', text: '[Summary of 8 earlier messages]\nNotes 1.' }],
    });
    expect(rest).toEqual(held(inner('s')).slice(8));
    expect(held(inner('s'))).toHaveLength(16);
    expect(model.requests).toHaveLength(1);
    expect(model.requests[0]).toMatchObject({ maxTokens: 500, messages: [{ role: 'user' }] });
    expect(model.requests[0]?.system).toMatch(/up to 250 words/);
    expect(model.requests[0]?.tools).toBeUndefined();
    expect(told(model, 0)).toContain('user:\n  a?\n');
    expect(told(model, 0)).not.toContain('c?');
  });

  it('G2: makes it once, and the next one of it and of what has come since', () => {
    const { model, memory, factory } = set({});
    say(memory, 'a', 'b', 'c', 'd');
    const first = held(memory);
    expect(held(factory('s'))).toEqual(first);
    say(memory, 'e');
    expect(held(memory).slice(0, -4)).toEqual(first);
    expect(model.requests).toHaveLength(1);
    say(memory, 'f');
    expect(textOf(held(memory)[0] ?? user(''))).toBe('[Summary of 16 earlier messages]\nNotes 2.');
    expect(idsOf(held(memory))[1]).toBe('e/input/0');
    expect(model.requests).toHaveLength(2);
    expect(told(model, 1)).toMatch(/^summary so far:\n {2}Notes 1\.\nuser:\n {2}c\?\n/);
    expect(told(model, 1)).not.toContain('b?');
  });

  it('G2: a long conversation is summarised in portions', () => {
    const { model, memory } = set({ whenTokens: 2_000 });
    const long = 'a word '.repeat(500);
    for (let nth = 0; nth < 20; nth += 1) {
      add(memory, user(`c${nth}/input/0`, long), answer(`c${nth}/1`, `${nth}!`));
    }
    const count = model.requests.length;
    expect(count).toBe(0);
    expect(textOf(held(memory)[0] ?? user(''))).toBe('[Summary of 36 earlier messages]\nNotes 5.');
    expect(told(model, 1)).toMatch(/^summary so far:\n {2}Notes 1\.\nuser:/);
    expect(told(model, 4)).toContain('17!');
  });

  it('I1: for any conversation, pairs stay whole and the last turns are as they were', () => {
    fc.assert(
      fc.property(someTurns, fc.integer({ min: 1, max: 4 }), (turns, keepTurns) => {
        const inner = inProcessMemory();
        const { memory, model } = set({ keepTurns, whenTokens: 60 }, inner);
        for (const messages of appendsOf(turns)) {
          add(memory, ...messages);
          const given = held(memory);
          const all = withResults(held(inner('s')));
          expect(unpaired(given)).toBeUndefined();
          const isSummed = given[0]?.id.startsWith('summary/') === true;
          const rest = isSummed ? given.slice(1) : given;
          expect(rest).toEqual(all.slice(all.length - rest.length));
          expect(turnStarts(rest).length).toBeGreaterThanOrEqual(
            Math.min(keepTurns, turnStarts(all).length),
          );
          if (isSummed)
            expect(textOf(given[0] ?? user(''))).toContain(` ${all.length - rest.length} earlier`);
          const before = model.requests.length;
          if (given.length < all.length) expect(held(memory)[0]).toEqual(given[0]);
          expect(model.requests.length).toBe(before);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('G2: loads at the same time share one request', () => {
    marbles(({ expectObservable, expectSubscriptions, model: modelOf, scheduler }) => {
      const model = modelOf('---t-(f|)');
      const { memory, factory } = set({ model, scheduler });
      say(memory, 'a', 'b', 'c', 'd');
      const load = (one: Memory) => one.load$().pipe(map((given) => idsOf(given)[0] ?? ''));
      expectObservable(load(memory)).toBe('-----(a|)', { a: 'summary/b/2' });
      expectObservable(load(factory('s'))).toBe('-----(a|)', { a: 'summary/b/2' });
      expectObservable(load(memory), '--^').toBe('-----(a|)', { a: 'summary/b/2' });
      expectObservable(load(factory('s')), '^-!').toBe('---');
      expectSubscriptions(model.subscriptions[0] ?? []).toBe('^----!');
    });
  });

  it('I5: the request is aborted when the last one has left, and asked again when one comes', () => {
    marbles(({ expectObservable, expectSubscriptions, model: modelOf, scheduler }) => {
      const model = modelOf(['---t-----(f|)', '-t(f|)']);
      const { memory } = set({ model, scheduler });
      say(memory, 'a', 'b', 'c', 'd');
      const load$ = memory.load$().pipe(map((given) => idsOf(given)[0] ?? ''));
      expectObservable(load$, '^-!').toBe('---');
      expectObservable(load$, '^---!').toBe('-----');
      expectObservable(load$, '------^').toBe('--------(a|)', { a: 'summary/b/2' });
      expectSubscriptions(model.subscriptions[0] ?? []).toBe('^---!');
      expectSubscriptions(model.subscriptions[1] ?? []).toBe('------^-!');
    });
  });

  it('I18: one that takes too long is given up, on the scheduler that was given', () => {
    marbles(({ expectObservable, expectSubscriptions, cold, scheduler }) => {
      const chunk$ = cold('--t', { t: text('t') });
      const model: Model = { name: 'slow', stream$: () => chunk$ };
      const { memory, warnings } = set({ model, scheduler, timeoutMs: 5 });
      say(memory, 'a', 'b', 'c', 'd');
      expectObservable(memory.load$().pipe(map(({ length }) => length))).toBe('-----(a|)', {
        a: 8,
      });
      expectSubscriptions(chunk$.subscriptions).toBe('^----!');
      scheduler.schedule(() => expect(warnings).toEqual([expect.stringContaining('timeoutMs')]), 6);
    });
  });

  const faults: readonly (readonly [string, Model['stream$']])[] = [
    ['fails', () => throwError(() => new Error('no'))],
    ['writes nothing', (request, context) => scriptedModel([finish()]).stream$(request, context)],
    ['writes blanks', (request, context) => scriptedModel([text(' \n')]).stream$(request, context)],
    [
      'asks for tools',
      (request, context) => scriptedModel([toolCall('x')]).stream$(request, context),
    ],
    [
      'would not',
      (request, context) => scriptedModel([text('I'), finish('refusal')]).stream$(request, context),
    ],
    [
      'throws',
      () => {
        throw new Error('at once');
      },
    ],
  ];

  it.each(faults)(
    'G2: a model that %s: the last turns, with a marker, and it is asked again',
    (_, stream$) => {
      let requests = 0;
      const counted: Model = {
        name: 'broken',
        stream$: (request, context) => {
          requests += 1;
          return stream$(request, context);
        },
      };
      const { memory, warnings } = set({ model: counted });
      say(memory, 'a', 'b', 'c', 'd');
      const given = held(memory);
      expect(idsOf(given).slice(0, 2)).toEqual(['c/input/0', 'c/1']);
      expect(textOf(given[0] ?? user(''))).toMatch(
        /^\[8 earlier messages, about \d+ tokens, are left out here\.\]\n\nc\?$/,
      );
      expect(warnings).toEqual([
        expect.stringContaining("The session 's' is loaded without a summary: "),
      ]);
      held(memory);
      expect(requests).toBe(2);
    },
  );

  it('G2: if the next one fails, the former one is still given', () => {
    const { memory } = set({ model: scriptedModel([text('Notes.')]) });
    say(memory, 'a', 'b', 'c', 'd');
    held(memory);
    say(memory, 'e', 'f');
    const [summary, next] = held(memory);
    expect(textOf(summary ?? user(''))).toBe('[Summary of 8 earlier messages]\nNotes.');
    expect(textOf(next ?? user(''))).toMatch(/^\[8 earlier messages.*e\?$/s);
  });

  it('I17: a listener that throws disturbs no other', () => {
    const report = (): never => {
      throw new Error('no');
    };
    const { memory } = set({ model: scriptedModel(), report });
    say(memory, 'a', 'b', 'c', 'd');
    expect(held(memory)).toHaveLength(8);
  });

  it('G2: a summary that was cut at its length is better than none', () => {
    const { memory } = set({ model: scriptedModel([text('Notes'), finish('length')]) });
    say(memory, 'a', 'b', 'c', 'd');
    expect(textOf(held(memory)[0] ?? user(''))).toContain('\nNotes');
  });

  it('G2: forgets a summary whose conversation is another by now', () => {
    let messages: readonly Message[] = [];
    const inner: MemoryFactory = () => ({
      ...inProcessMemory()('s'),
      load$: () => {
        const memory = inProcessMemory()('s');
        add(memory, ...messages);
        return memory.load$();
      },
    });
    const { model, memory } = set({}, inner);
    const talk = (...calls: readonly string[]) => {
      const made = inProcessMemory()('s');
      say(made, ...calls);
      messages = held(made);
    };
    talk('a', 'b', 'c', 'd');
    held(memory);
    talk('z');
    expect(idsOf(held(memory))[0]).toBe('z/input/0');
    talk('z', 'y', 'x', 'w');
    expect(idsOf(held(memory))[0]).toBe('summary/y/2');
    expect(told(model, 1)).not.toContain('summary so far');
  });

  it('X18: remembers the summaries of so many sessions', () => {
    const { model, factory } = set({ maxSessions: 2 });
    for (const id of ['a', 'b', 'a', 'c', 'a']) {
      if (held(factory(id)).length === 0) say(factory(id), 'a', 'b', 'c', 'd');
      held(factory(id));
    }
    expect(model.requests).toHaveLength(3);
    held(factory('b'));
    expect(model.requests).toHaveLength(4);
  });

  it('I8: an agent is shown the summary, and memory never has it', async () => {
    const inner = inProcessMemory();
    const memory = summarisingMemory(inner, { model: writer(), whenTokens: 10, keepTurns: 1 });
    const model = scriptedModel([text('One.')], [text('Two.')], [text('Three.')]);
    const chat = sessions(createAgent({ model }), { memory }).open('s');
    for (const question of ['Tell me the first thing.', 'The second, please.', 'The third?']) {
      await chat.call(question);
    }
    expect(model.requests[2]?.messages.map(textOf)).toEqual([
      '[Summary of 2 earlier messages]\nNotes 1.',
      'The second, please.',
      'Two.',
      'The third?',
    ]);
    expect(held(inner('s')).map(textOf).join('|')).toBe(
      'Tell me the first thing.|One.|The second, please.|Two.|The third?|Three.',
    );
  });

  it('I5: a call that is left while its conversation is summarised aborts the request', () => {
    let left = 0;
    const model: Model = {
      name: 'slow',
      stream$: () => NEVER.pipe(finalize(() => void (left += 1))),
    };
    const { memory, factory } = set({ model, whenTokens: 10 });
    say(memory, 'a', 'b', 'c', 'd');
    const call = sessions(createAgent({ model: writer() }), { memory: factory })
      .open('s')
      .call$('?')
      .subscribe();
    expect(left).toBe(0);
    call.unsubscribe();
    expect(left).toBe(1);
  });

  it.each([
    [{ model: undefined }, /needs 'model'/],
    [{ keepTurns: 0 }, /'keepTurns' must be a whole number of at least 1/],
    [{ maxSessions: 0 }, /'maxSessions'/],
    [{ keep: 1 }, /no option 'keep'/],
  ])('refuses a misuse (%#)', (options, why) => {
    expect(() => set(options as never)).toThrow(why);
  });
});
