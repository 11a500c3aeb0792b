import { expect, it } from '@jest/globals';
import { asksForHelp, isSmallTalk, smallReply } from './small-talk.js';

it.each([
  ['Hello!', true],
  ['hi there', true],
  ['Good morning, how are you today?', true],
  ['thanks a lot', true],
  ['Hello world program', false],
  ['', false],
  ['What is 2+2?', false],
])('isSmallTalk(%j) is %s', (text, expected) => {
  expect(isSmallTalk(text)).toBe(expected);
});

it.each([
  ['help', true],
  ['What can you do?', true],
  ['who are you', true],
  ['which tools do you have?', true],
  ['Are you an LLM?', true],
  ['what tools are there?', true],
  ['help me calculate 2+2', false],
  ['what can tools do', false],
])('asksForHelp(%j) is %s', (text, expected) => {
  expect(asksForHelp(text)).toBe(expected);
});

it('smallReply answers thanks and goodbyes', () => {
  expect(['thx', 'bye', 'ok', 'hello'].map(smallReply)).toEqual([
    'You are welcome.',
    'Goodbye.',
    'All right.',
    undefined,
  ]);
});
