import { expect, it } from '@jest/globals';
import { seeksInformation } from './seek-information.js';

it.each([
  ['how do interrupts work?', true],
  ['interrupts', true],
  ['tell me about the loop', true],
  ['Could you explain backpressure', true],
  ['the loop ends where?', true],
  ['write a poem about the sea', false],
  ['can you draw a cat?', false],
  ['I am tired', false],
  ['yesterday we walked along the river for hours', false],
  ['what is it?', false],
  ['2 + 3,5?', false],
  ['', false],
])('seeksInformation(%j) is %s', (text, expected) => {
  expect(seeksInformation(text)).toBe(expected);
});
