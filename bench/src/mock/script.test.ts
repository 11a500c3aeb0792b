import { expect, it } from '@jest/globals';
import { readScript } from './script.js';

it.each([
  ['8x1-200', { turns: 8, tools: 1, deltas: 200, gapMs: 0, isWhole: false }],
  ['0x0-50-20', { turns: 0, tools: 0, deltas: 50, gapMs: 20, isWhole: false }],
  ['8x1-200w', { turns: 8, tools: 1, deltas: 200, gapMs: 0, isWhole: true }],
  ['gpt-bench-4x16-200', { turns: 4, tools: 16, deltas: 200, gapMs: 0, isWhole: false }],
  ['claude-3-0x0-20000', { turns: 0, tools: 0, deltas: 20_000, gapMs: 0, isWhole: false }],
])('reads the script at the end of %s', (model, script) => {
  expect(readScript(model)).toEqual(script);
});

it.each(['gpt-5', '8x1', '8x0-200', '0x1-200', '8x1-200-', 'x8x1-200', '8x1-200-20-3'])(
  'finds none in %s',
  (model) => {
    expect(readScript(model)).toBeUndefined();
  },
);
