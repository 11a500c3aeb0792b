import { describe, expect, it } from '@jest/globals';
import { clock } from './declarations.test-data.js';
import type { Observation } from './read-conversation.js';
import { readTools } from './read-tools.js';
import { callKey, type CallStep, outcomeOf } from './step.js';

it('callKey is the same in whatever order arguments are written', () => {
  expect(callKey('a', { x: 1, y: [{ b: 2, c: null }] })).toBe(
    callKey('a', { y: [{ c: null, b: 2 }], x: 1 }),
  );
  expect(callKey('a', { x: 1 })).not.toBe(callKey('a', { x: '1' }));
});

describe('outcomeOf', () => {
  const [tool] = readTools([clock]).tools;
  if (tool === undefined) throw new Error('There is no tool.');
  const readings = [{ timeZone: 'A' }, { timeZone: 'B' }];
  const step: CallStep = { status: 'call', text: '', tool, readings };
  const observed = (timeZone: string, isError: boolean): [string, Observation] => [
    callKey('clock', { timeZone }),
    { name: 'clock', input: { timeZone }, text: '', isError },
  ];

  it.each([
    [[], 'open', 'A'],
    [[observed('A', false)], 'done', 'A'],
    [[observed('A', true)], 'open', 'B'],
    [[observed('A', true), observed('B', false)], 'done', 'B'],
    [[observed('A', true), observed('B', true)], 'failed', 'A'],
  ])('%#: %j', (answers, status, timeZone) => {
    expect(outcomeOf(step, new Map(answers))).toMatchObject({ status, input: { timeZone } });
  });
});
