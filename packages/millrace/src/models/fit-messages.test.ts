import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Message, textOf } from '../values/message.js';
import { unpaired } from '../values/pairing.js';
import {
  assistant,
  conversations,
  idsOf,
  isTask,
  longConversation,
  used,
  user,
} from '../layers/fitting/conversation.test-support.js';
import { countMessages, plainCounter, type TokenCounter } from './count-request.js';
import { fitMessages } from './fit-messages.js';

const long = 'word '.repeat(80);
const none = { content: [] };
const costOf = (messages: readonly Message[]): number => countMessages(plainCounter, messages);

describe('fitMessages', () => {
  it('C2: refuses a budget that is no number', () => {
    expect(() => fitMessages([], Number.NaN, () => true)).toThrow(/needs a token budget/);
  });

  const history = [
    user('h1', long),
    assistant('h2', long),
    user('h3', long),
    assistant('h4', 'ok'),
  ];
  const task = user('task', 'And now?');
  const tools = [...used('t1', long), ...used('t2', long), ...used('t3', 'short')];
  const all = [...history, task, ...tools];
  const kept = (budget: number): readonly string[] =>
    idsOf(fitMessages(all, budget, isTask).messages);

  it('C2, C11: leaves out the oldest history first, then the oldest tools after the task', () => {
    expect(kept(1000)).toEqual(idsOf(all));
    expect(kept(450)[0]).toBe('h3');
    expect(kept(300)[0]).toBe('task');
    expect(kept(180)).toEqual(['task', 't2', 't2/results', 't3', 't3/results']);
    expect(kept(50)).toEqual(['task', 't3', 't3/results']);
  });

  it('C2: without a budget only the task stays, and says how much it is over', () => {
    const { messages, over, omitted } = fitMessages([...all, user('f', 'Go on.')], 0, isTask);
    expect(idsOf(messages)).toEqual(['task']);
    expect(over).toBe(costOf(messages));
    expect(omitted).toBe(11);
    expect(fitMessages(all, -100, isTask).over).toBe(100 + costOf(messages));
  });

  it('C2: keeps the newest tools also when something was said after them', () => {
    const { messages } = fitMessages([...all, user('feedback', 'Answer now.')], 60, isTask);
    expect(idsOf(messages)).toEqual(['task', 't3', 't3/results', 'feedback']);
    const untooled = [...history, task, assistant('a', long), user('f', 'Better.')];
    const fitted = fitMessages(untooled, 1, isTask);
    expect(idsOf(fitted.messages)).toEqual(['task', 'a', 'f']);
    expect(fitted.over).toBe(costOf(fitted.messages) - 1);
  });

  it('C2: what was said to the call since is the task too, and tools before it may go', () => {
    const steered = [task, ...used('t1', long), user('task2', 'Well?'), ...used('t2', 'ok')];
    const { messages } = fitMessages(steered, 60, isTask);
    expect(idsOf(messages)).toEqual(['task', 'task2', 't2', 't2/results']);
    expect(messages.map(({ content }) => content.length)).toEqual([2, 1, 1, 1]);
  });

  it('C2: a turn of the history goes as a whole, with all its tools', () => {
    const old = [
      user('h', 'Look.'),
      ...used('h1', 'x'),
      ...used('h2', long),
      assistant('h3', 'A.'),
    ];
    const { messages } = fitMessages([...old, task], costOf(old), isTask);
    expect(idsOf(messages)).toEqual(['task']);
  });

  it('C2: media have a weight', () => {
    const image: Message = {
      id: 'h0',
      role: 'user',
      content: [{ type: 'image', source: { kind: 'url', url: 'https://example.com/a.png' } }],
    };
    expect(fitMessages([image, task], 500, isTask).omittedTokens).toBe(1004);
  });

  it('C2, I15: results of the newest tools that are too long are cut in the middle, all to one length', () => {
    const newest = used('t9', `${'begin '.repeat(400)}end`, 'short', 'x'.repeat(4000));
    const { messages, cut, over } = fitMessages([...history, task, ...newest], 800, isTask);
    expect({ cut, over }).toEqual({ cut: 2, over: 0 });
    expect(costOf(messages)).toBeLessThanOrEqual(800);
    expect(costOf(messages)).toBeGreaterThan(700);
    const results = messages.at(-1);
    const [first, second] = results?.role === 'tool' ? results.content.map(textOf) : [];
    expect(first).toMatch(/^begin .*\n\[… \d+ of 2403 characters omitted here …\]\n.* end$/s);
    expect(second).toBe('short');
  });

  it('C2: results that are cut take all the room there is, and no more', () => {
    const counter: TokenCounter = { count: (it) => it.length, factor: () => 1.5 };
    const newest = used('t9', 'x'.repeat(100), 'y'.repeat(2000), 'z'.repeat(3000));
    const options = { counter, model: 'm' };
    const { messages, cut, over } = fitMessages([task, ...newest], 3_000, isTask, options);
    expect({ cut, over }).toEqual({ cut: 2, over: 0 });
    expect(countMessages(counter, messages, 'm')).toBeGreaterThan(2_980);
  });

  it('C2: results keep a part for any budget, and then it reports the excess', () => {
    const newest = used('t9', long.repeat(10), long.repeat(10));
    const { messages, cut, over } = fitMessages([task, ...newest], 100, isTask);
    expect(cut).toBe(2);
    expect(over).toBe(costOf(messages) - 100);
    expect(costOf(messages)).toBeLessThan(200);
  });

  it('I15: says what is left out, in the task, and changes nothing else', () => {
    const { messages, omitted, omittedTokens } = fitMessages(all, 50, isTask);
    expect(omitted).toBe(8);
    expect(omittedTokens).toBe(costOf([...history, ...tools.slice(0, 4)]));
    expect(textOf(messages[0] ?? none)).toBe(
      `[8 earlier messages, about ${omittedTokens} tokens, are left out here.]\n\nAnd now?`,
    );
    expect(messages.slice(1)).toEqual(used('t3', 'short'));
    const whole = { omitted: 0, omittedTokens: 0, cut: 0 };
    expect(fitMessages(all, 1000, isTask)).toEqual({ ...whole, messages: all, over: 0 });
    const taskless = fitMessages(history, 10, isTask);
    expect(taskless.messages).toBe(history);
    expect(taskless.over).toBe(costOf(history) - 10);
  });

  it('I15: one marker counts what was left out in two goes', () => {
    const once = fitMessages(all, 300, isTask);
    const twice = fitMessages(once.messages, 50, isTask);
    const atOnce = fitMessages(all, 50, isTask);
    expect(once.omitted + twice.omitted).toBe(8);
    expect(twice.messages).toEqual(atOnce.messages);
  });

  it('I15: does not change what it was given', () => {
    const own: Message = { id: 'task', role: 'user', content: [{ type: 'text', text: 'And?' }] };
    const { messages } = fitMessages([user('h', long), own], 40, isTask);
    expect(messages[0]).not.toBe(own);
    expect(own).toEqual({ id: 'task', role: 'user', content: [{ type: 'text', text: 'And?' }] });
    expect(Object.isFrozen(own.content[0])).toBe(false);
  });
});

const counters: readonly TokenCounter[] = [
  plainCounter,
  { count: (text) => text.length },
  { count: (text) => text.split(/\b/).length, factor: () => 1.37 },
];

describe('for any conversation, budget and counter', () => {
  const budgets = fc.oneof(fc.integer({ min: -10, max: 2_000 }), fc.nat(200));
  const steps = fc.oneof(fc.constant(0), fc.nat(300));
  const cases = [conversations, budgets, fc.constantFrom(...counters), steps] as const;

  it('C2, I15: pairs stay whole, the task stays, the order stays, and it fits or says over', () => {
    fc.assert(
      fc.property(...cases, (messages, budget, counter, step) => {
        const fitted = fitMessages(messages, budget, isTask, { counter, step, model: 'm' });
        const cost = countMessages(counter, fitted.messages, 'm');
        expect(unpaired(fitted.messages)).toBeUndefined();
        expect(fitted.messages.filter(isTask).map(({ id }) => id)).toEqual(
          idsOf(messages.filter(isTask)),
        );
        const places = fitted.messages.map(({ id }) => idsOf(messages).indexOf(id));
        expect(places).toEqual([...places].sort((a, b) => a - b));
        expect(fitted.over).toBe(Math.max(0, cost - budget));
        expect(fitted.omitted).toBe(messages.length - fitted.messages.length);
      }),
      { numRuns: 300 },
    );
  });

  it('C2: what is no tool after the task stays, and so do the newest tools', () => {
    fc.assert(
      fc.property(...cases, (messages, budget, counter, step) => {
        fc.pre(budget > 0);
        const kept = idsOf(fitMessages(messages, budget, isTask, { counter, step }).messages);
        const behind = messages.slice(messages.findIndex(isTask));
        const newest = behind.findLastIndex(({ role }) => role === 'tool');
        const stay = behind.filter(
          (message, index) => message.role === 'user' || index === newest || index === newest - 1,
        );
        expect(kept).toEqual(expect.arrayContaining([...idsOf(stay)]));
      }),
    );
  });

  it('C2: what was made to fit is not changed again', () => {
    fc.assert(
      fc.property(...cases, (messages, budget, counter, step) => {
        const { messages: once, over } = fitMessages(messages, budget, isTask, { counter, step });
        const again = fitMessages(once, budget, isTask, { counter, step });
        expect(again.messages).toEqual(once);
        expect(again).toMatchObject({ omitted: 0, cut: 0, over });
      }),
      { numRuns: 300 },
    );
  });

  it('I15: a marker stands where something was left out, and nowhere else', () => {
    fc.assert(
      fc.property(...cases, (messages, budget, counter, step) => {
        const fitted = fitMessages(messages, budget, isTask, { counter, step });
        const task = fitted.messages.find(isTask) ?? none;
        const said = `[${fitted.omitted} earlier messages, about ${fitted.omittedTokens} tokens, are left out here.]`;
        expect(textOf(task).includes(said)).toBe(fitted.omitted > 0);
        const same = fitted.messages.filter((message) => messages.includes(message)).length;
        const changed = (fitted.omitted > 0 ? 1 : 0) + (fitted.cut > 0 ? 1 : 0);
        expect(fitted.messages.length - same).toBe(changed);
      }),
    );
  });

  it('C2: in steps, what is left out grows with the conversation, and seldom', () => {
    const pairs = Array.from({ length: 60 }, (_, index) => used(`t${index}`, long));
    const omissions = pairs.map((_, index) => {
      const messages = [user('task', 'Go.'), ...pairs.slice(0, index + 1).flat()];
      const kept = idsOf(fitMessages(messages, 2_000, isTask, { step: 500 }).messages);
      return idsOf(messages).filter((id) => !kept.includes(id));
    });
    omissions.slice(1).forEach((omitted, index) => {
      expect(omitted.slice(0, omissions[index]?.length)).toEqual(omissions[index]);
    });
    const changes = new Set(omissions.map(String)).size;
    expect(changes).toBeLessThan(15);
    expect(omissions.at(-1)?.length).toBeGreaterThan(70);
  });
});

describe('a long conversation', () => {
  it('X18: is counted once, however often it is fitted; the work grows with its length', () => {
    const counted = (length: number): readonly number[] => {
      let calls = 0;
      const counter: TokenCounter = {
        count: (text) => {
          calls += 1;
          return text.length;
        },
      };
      const messages = longConversation(length);
      const half = countMessages(counter, messages) / 2;
      const cold = calls;
      fitMessages(messages, half, isTask, { counter });
      fitMessages(messages, half / 2, isTask, { counter });
      return [cold, calls - cold];
    };
    const [cold500 = 0, warm500 = 0] = counted(500);
    const [cold5000 = 0, warm5000 = 0] = counted(5_000);
    expect(cold500).toBeLessThan(1_000);
    expect(cold5000).toBeLessThan(10_000);
    expect(warm500).toBeLessThan(20);
    expect(warm5000).toBeLessThan(20);
  });
});
