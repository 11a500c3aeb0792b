import { describe, expect, it } from '@jest/globals';
import { splitQuestion } from './split-question.js';

const textsOf = (message: string): readonly string[] =>
  splitQuestion(message).map(({ joint, text }) => `${joint}: ${text}`);

describe('splitQuestion', () => {
  it.each([
    ['one question', ['start: one question']],
    ['What is 2,349.5 + 1? Yes', ['start: What is 2,349.5 + 1', 'sentence: Yes']],
    ['Read a.md; what is it', ['start: Read a.md', 'sentence: what is it']],
    ['6 * 7, then add 3', ['start: 6 * 7', 'then: add 3']],
    ['divide by 7 and then add 3', ['start: divide by 7', 'then: add 3']],
    ['2 + 2, and what is the time', ['start: 2 + 2', 'clause: what is the time']],
    ['2 + 2 and is the loop safe', ['start: 2 + 2', 'clause: is the loop safe']],
    ['show a.md and tell me its size', ['start: show a.md', 'clause: tell me its size']],
    ['Tokyo, London and Paris', ['start: Tokyo', 'list: London', 'list: Paris']],
    [
      'What time is it in Tokyo? And in Rome?',
      ['start: What time is it in Tokyo', 'sentence: in Rome'],
    ],
    ['How do I read and show files?', ['start: How do I read', 'list: show files']],
    ['say "a, b. c" and (d, e)', ['start: say "a, b. c"', 'list: (d, e)']],
    ["it's Ann's and Bob's", ["start: it's Ann's", "list: Bob's"]],
    ['e.g. this, i.e. that', ['start: e.g. this', 'list: i.e. that']],
    ['5! + 3. Fine!', ['start: 5! + 3', 'sentence: Fine']],
    ['one\ntwo', ['start: one', 'sentence: two']],
    ['10! / 8! and more', ['start: 10! / 8!', 'list: more']],
    ['I have 5! Tell me', ['start: I have 5', 'sentence: Tell me']],
    ['', []],
    ['?!', []],
  ])('%j', (message, expected) => {
    expect(textsOf(message)).toEqual(expected);
  });

  it('says where each fragment stands', () => {
    const message = '  What? Then,  2 and (3 and 4). ';
    for (const { start, end, text } of splitQuestion(message)) {
      expect(message.slice(start, end)).toBe(text);
    }
  });

  it('marks conditions', () => {
    const conditions = (message: string) => splitQuestion(message).map((it) => it.condition);
    expect(conditions("When it's noon here, what time is it in Rome?")).toEqual([true, false]);
    expect(conditions('If I eat 2 then how many are left')).toEqual([true, false]);
    expect(conditions('when it is 5pm here what time is it there')).toEqual([true, false]);
    expect(conditions('When is lunch, and what is it?')).toEqual([false, false]);
  });
});
