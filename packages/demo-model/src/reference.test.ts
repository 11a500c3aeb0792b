import { expect, it } from '@jest/globals';
import { refersBack, referenceFor } from './reference.js';
import type { Step } from './step.js';

it.each([
  ['multiply it by 3', true],
  ['tell me its version', true],
  ['what time is it', false],
  ['how do streams end', false],
])('refersBack(%j) is %s', (text, expected) => {
  expect(refersBack(text)).toBe(expected);
});

const given: Step = { status: 'given', text: '', value: '7' };
const waiting: Step = { status: 'waiting', text: '' };
const blocked: Step = { status: 'blocked', text: '' };
const unfit: Step = { status: 'unfit', text: '' };

it.each([
  [[], '42', { status: 'known', value: '42' }],
  [[], undefined, { status: 'none' }],
  [[given], '42', { status: 'known', value: '7' }],
  [[given, unfit], '42', { status: 'known', value: '7' }],
  [[given, waiting], undefined, { status: 'open' }],
  [[blocked], '42', { status: 'failed' }],
])('referenceFor, %#', (before, earlierValue, expected) => {
  expect(referenceFor(before, { answers: new Map(), earlierValue })).toEqual(expected);
});
