import { expect, it } from '@jest/globals';
import { fourTools } from './declarations.test-data.js';
import { outlineParts } from './outline-parts.js';
import { planSteps } from './plan-steps.js';
import type { Observation } from './read-conversation.js';
import { readTools } from './read-tools.js';
import { recall } from './recall.js';
import { replay, wanted } from './replay.js';
import { callKey } from './step.js';

const toolbox = readTools(fourTools);
const { parts } = outlineParts('6 * 7, and the time in Rome', toolbox);
const context = recall([], toolbox);

const seen = (name: string, input: Observation['input'], text: string): Observation => ({
  name,
  input,
  text,
  isError: false,
});

const textFor = (rounds: readonly (readonly Observation[])[]): string | undefined =>
  replay(parts, { question: '', rounds }, context).get(
    callKey('calculator', { expression: '6 * 7' }),
  )?.text;

it('finds the result of a call wherever it stands in its round', () => {
  const time = seen('clock', { timeZone: 'Europe/Rome' }, '12:00');
  expect(textFor([[time, seen('calculator', { expression: '6 * 7' }, '42')]])).toBe('42');
});

it('finds that of an edited call in its place, if the tool is the same', () => {
  const time = seen('clock', { timeZone: 'Europe/Rome' }, '12:00');
  expect(textFor([[seen('calculator', { expression: '6 * 8' }, '48'), time]])).toBe('48');
  expect(textFor([[seen('other', {}, '48'), time]])).toBeUndefined();
  expect(textFor([[seen('calculator', { expression: '6 * 8' }, '48')]])).toBeUndefined();
});

it('wants each open call once', () => {
  const steps = planSteps([...parts, ...parts], context);
  expect(wanted(steps, new Map()).map(({ name }) => name)).toEqual(['calculator', 'clock']);
});
