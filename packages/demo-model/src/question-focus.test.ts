import { expect, it } from '@jest/globals';
import { asksForDefinition, questionFocus } from './question-focus.js';
import { stemsOf } from './words.js';

it.each([
  ['How do I stop an agent while it is running?', 'stopping agents'],
  ['what does the documentation say about interceptors', 'interceptor'],
  ['which node version do i need', 'node version'],
  ['why is it called millrace', 'millrace'],
  ['what do the docs mention on demand in 2024', 'demand'],
  ['the documentation', 'documentation'],
])('%s', (question, expected) => {
  expect([...questionFocus(question)]).toEqual(stemsOf(expected));
});

it('asksForDefinition', () => {
  expect(asksForDefinition('what is a gate?')).toBe(true);
  expect(asksForDefinition('how does a gate work?')).toBe(false);
});
