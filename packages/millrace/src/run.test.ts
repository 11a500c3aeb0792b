import { describe, expect, it } from '@jest/globals';
import { type Message, textBlock } from './values/message.js';
import { append, assertPaired, startRun, unanswered } from './run.js';
import { unpaired } from './values/pairing.js';

const user: Message = { id: 'u', role: 'user', content: [textBlock('?')] };
const asks = (...ids: readonly string[]): Message => ({
  id: 'a',
  role: 'assistant',
  content: ids.map((id) => ({ type: 'tool_call', id, name: 'f', input: {} })),
});
const answers = (...ids: readonly string[]): Message => ({
  id: 't',
  role: 'tool',
  content: ids.map((toolCallId) => ({
    type: 'tool_result',
    toolCallId,
    content: [],
    isError: false,
  })),
});

describe('a run', () => {
  it.each([
    ['nothing', []],
    ['talk', [user]],
    ['a pair', [user, asks('1', '2'), answers('1', '2'), user]],
  ])('I1: %s is paired', (_, messages) => {
    expect(unpaired(messages)).toBeUndefined();
  });

  it.each([
    ['a use without a result', [user, asks('1')]],
    ['a result without a use', [user, answers('1')]],
    ['a result of another use', [asks('1'), answers('2')]],
    ['results in another order', [asks('1', '2'), answers('2', '1')]],
    ['a result too many', [asks('1'), answers('1', '1')]],
    ['something between', [asks('1'), user, answers('1')]],
  ])('I1: %s is not paired', (_, messages) => {
    expect(unpaired(messages)).toMatch(/tool call/);
    expect(() => assertPaired(messages)).toThrow(expect.objectContaining({ code: 'invalidState' }));
  });

  it('knows the message whose tools are not answered', () => {
    const run = append(startRun([], [user]), asks('1'));
    expect(unanswered(run)?.id).toBe('a');
    expect(unanswered(append(run, answers('1')))).toBeUndefined();
  });

  it('X19: holds frozen messages', () => {
    const { messages } = append(startRun([], [structuredClone(user)]), asks('1'));
    expect(Object.isFrozen(messages)).toBe(true);
    expect(messages.every((message) => Object.isFrozen(message.content[0]))).toBe(true);
  });
});
