import { expect, it } from '@jest/globals';
import { explainAnswer, explainCalls } from './explain.js';
import type { Step } from './step.js';

const steps: readonly Step[] = [
  { status: 'unfit', text: 'sing' },
  { status: 'waiting', text: 'and add 3' },
];

it('explains what is used, and what is not', () => {
  expect(explainCalls(steps, [{ name: 'a', input: { x: 1, y: 'z' } }])).toBe(
    '2 parts: “sing” → unfit; “add 3” → waiting. Using a(1, "z"). ',
  );
  const long = explainCalls(steps, [{ name: 'a', input: { x: 'word '.repeat(4_000) } }]);
  expect(long.length).toBeLessThan(160);
  expect(explainAnswer(steps)).toBe('No tool to use. ');
});
