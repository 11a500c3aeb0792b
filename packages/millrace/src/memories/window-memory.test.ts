import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createAgent } from '../agent.js';
import { inProcessMemory } from './in-process-memory.js';
import { type Message, textOf } from '../values/message.js';
import { unpaired } from '../values/pairing.js';
import { memoryContract } from '../testing/memory-contract.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';
import { tool } from '../tools/tool.js';
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
import { windowMemory, wrapMemory } from './window-memory.js';
import { sessions } from '../layers/sessions/index.js';

const unmarked = ([first, ...rest]: readonly Message[]): readonly Message[] =>
  first?.role === 'user' && textOf(first).startsWith('[')
    ? [{ ...first, content: first.content.slice(1) }, ...rest]
    : first === undefined
      ? []
      : [first, ...rest];

describe('windowMemory', () => {
  for (const { name, run } of memoryContract(() => windowMemory(inProcessMemory()))) {
    it(`G2: ${name}`, run);
  }

  it('G2: gives the last turns, says how much is left out, and leaves nothing out below', () => {
    const inner = inProcessMemory();
    const memory = windowMemory(inner, { turns: 2 })('s');
    for (const call of ['a', 'b', 'c', 'd']) {
      add(memory, user(`${call}/input/0`, 'Why?'), ...exchange(`${call}/1`), answer(`${call}/2`));
    }
    const given = held(memory);
    expect(idsOf(given)).toEqual(
      ['c', 'd'].flatMap((it) => [`${it}/input/0`, `${it}/1`, `${it}/1/results`, `${it}/2`]),
    );
    expect(given[0]?.content.map((block) => block.type === 'text' && block.text)).toEqual([
      expect.stringMatching(/^\[8 earlier messages, about \d+ tokens, are left out here\.\]\n\n$/),
      'Why?',
    ]);
    expect(held(inner('s'))).toHaveLength(16);
    expect(
      held(inner('s'))
        .map((it) => textOf(it))
        .join(''),
    ).not.toContain('left out');
  });

  it('I1, I15: for any conversation, the last turns are given as they are, pairs whole, in order', () => {
    fc.assert(
      fc.property(someTurns, fc.integer({ min: 1, max: 5 }), (turns, keep) => {
        const inner = inProcessMemory();
        const memory = windowMemory(inner, { turns: keep })('s');
        appendsOf(turns).forEach((messages) => add(memory, ...messages));
        const all = withResults(held(inner('s')));
        const given = held(memory);
        expect(unpaired(given)).toBeUndefined();
        const isCut = given.length < all.length;
        expect(isCut ? unmarked(given) : given).toEqual(all.slice(all.length - given.length));
        if (isCut) expect(textOf(given[0] ?? user(''))).toContain(`[${all.length - given.length} `);
        appendsOf(turns).forEach((messages) => add(memory, ...messages));
        expect(held(memory)).toEqual(given);
      }),
    );
  });

  it('T13: a turn that waits for a result is given, with all after it', () => {
    const memory = windowMemory(inProcessMemory(), { turns: 1 })('s');
    add(memory, user('a/input/0'), ...exchange('a/1', 1, true));
    add(memory, user('b/input/0'), answer('b/interrupted'));
    add(memory, user('c/input/0'), answer('c/interrupted'));
    expect(held(memory)).toHaveLength(7);
  });

  it('G2: an agent is shown the window, and remembers everything', async () => {
    const inner = inProcessMemory();
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'blue' });
    const answers = [1, 2, 3].flatMap((nth) => [[toolCall('look')], [text(`${nth}.`)]]);
    const model = scriptedModel(...answers);
    const memory = windowMemory(inner, { turns: 1 });
    const chat = sessions(createAgent({ model, tools: [look] }), { memory }).open('s');
    for (const nth of [1, 2, 3]) await chat.call(`Question ${nth}`);
    const shown = model.requests.map(({ messages }) => messages.map(({ role }) => role).join(' '));
    expect(shown[4]).toBe('user assistant tool assistant user');
    expect(textOf(model.requests[4]?.messages[0] ?? user(''))).toMatch(
      /^\[4 earlier .*Question 2$/s,
    );
    expect(
      held(inner('s'))
        .filter(({ role }) => role === 'user')
        .map(textOf),
    ).toEqual(['Question 1', 'Question 2', 'Question 3']);
    expect(held(inner('s'))).toHaveLength(12);
  });

  it.each([
    [() => windowMemory(inProcessMemory(), { turns: 0 }), /'turns' must be a whole number/],
    [() => windowMemory(undefined as never), /needs a factory of memories/],
    [() => windowMemory(inProcessMemory(), { turn: 1 } as never), /no option 'turn'/],
  ])('refuses a misuse (%#)', (create, why) => {
    expect(create).toThrow(why);
  });
});

describe('wrapMemory', () => {
  it('G2: an agent wraps the memory of any session, which stays whole, and calls have none without a session', async () => {
    const model = scriptedModel([text('1.')], [text('2.')], [text('3.')]);
    const recent = wrapMemory('recent', (memory) => windowMemory(memory, { turns: 1 }));
    const agent = createAgent({ model, use: [recent] });
    const chat = sessions(agent, { memory: inProcessMemory() }).open('s');
    for (const nth of [1, 2, 3]) await chat.call(`Question ${nth}`);
    const shown = model.requests.at(-1)?.messages.map(textOf) ?? [];
    expect(shown.slice(1)).toEqual(['2.', 'Question 3']);
    expect(shown[0]).toMatch(/^\[2 earlier messages, .*Question 2$/s);
    expect(held(chat.memory).map(textOf)).toEqual([
      'Question 1',
      '1.',
      'Question 2',
      '2.',
      'Question 3',
      '3.',
    ]);
    const alone = scriptedModel([text('Yes.')]);
    expect(textOf(await agent.call('Alone?', { model: alone }))).toBe('Yes.');
  });

  it('refuses a misuse', () => {
    expect(() => wrapMemory(windowMemory as never, undefined as never)).toThrow(
      /takes a name and a function/,
    );
  });
});
