import { describe, expect, it } from '@jest/globals';
import { ask, assistant, used, user } from './declarations.test-data.js';
import { longestQuestion, readConversation } from './read-conversation.js';

const use = { name: 'clock', input: { timeZone: 'UTC' }, output: '12:00' };

describe('readConversation', () => {
  it('finds the question, its results, and the turns before', () => {
    const messages = [user('one'), assistant('…'), user('two'), ...used(use), ...used(use)];
    expect(readConversation(ask(messages))).toMatchObject({
      question: 'two',
      rounds: [[{ name: 'clock', text: '12:00', isError: false }], [{ name: 'clock' }]],
      earlier: [{ question: 'one', rounds: [] }],
      mayAct: true,
    });
  });

  it('takes no instruction behind results for the question, where tools may not be used', () => {
    const messages = [user('one'), ...used(use), user('Answer now.')];
    expect(readConversation(ask(messages, { toolChoice: 'none' })).question).toBe('one');
    expect(readConversation({ messages }).question).toBe('one');
    expect(readConversation(ask(messages)).question).toBe('Answer now.');
  });

  it('takes the numbers off a list, and spaces together', () => {
    const questionIn = (text: string) => readConversation(ask(text)).question;
    expect(questionIn('1. one   two\n2) three')).toBe('one two\nthree');
    expect(questionIn('- one\n- two')).toBe('one\ntwo');
    expect(questionIn('- 3 + 4')).toBe('- 3 + 4');
  });

  it('reads the beginning of a long question, and nothing of none', () => {
    expect(readConversation(ask('x'.repeat(10_000))).question).toHaveLength(longestQuestion);
    expect(readConversation(ask([]))).toMatchObject({ question: '', rounds: [], earlier: [] });
  });

  it('passes over tool uses without a result', () => {
    const [asked] = used(use);
    expect(readConversation(ask([user('one'), asked])).rounds).toEqual([]);
  });
});
