import { expect, it } from '@jest/globals';
import type { Message } from 'millrace';
import { unanswered } from './unanswered.js';

const asks = (...ids: readonly string[]): Message => ({
  id: 'asks',
  role: 'assistant',
  content: ids.map((id) => ({ type: 'tool_call', id, name: 'wait', input: {} })),
});
const answers = (...ids: readonly string[]): Message => ({
  id: 'answers',
  role: 'tool',
  content: ids.map((toolCallId) => ({
    type: 'tool_result',
    toolCallId,
    content: [],
    isError: false,
  })),
});

it.each([
  { what: 'nothing asked', messages: [asks()], found: [] },
  { what: 'all answered', messages: [asks('a', 'b'), answers('a', 'b')], found: [] },
  { what: 'no tool message', messages: [asks('a')], found: ['a'] },
  { what: 'one result missing', messages: [asks('a', 'b'), answers('a')], found: ['a', 'b'] },
  { what: 'another order', messages: [asks('a', 'b'), answers('b', 'a')], found: ['a', 'b'] },
  { what: 'one result too many', messages: [asks('a'), answers('a', 'a')], found: ['a'] },
  { what: 'a message between', messages: [asks('a'), asks(), answers('a')], found: ['a'] },
])('finds tool uses without one result: $what', ({ messages, found }) => {
  expect(unanswered(messages)).toEqual(found);
});
