import { expect, it } from '@jest/globals';
import { fourTools } from './declarations.test-data.js';
import { readTools } from './read-tools.js';
import { recall } from './recall.js';

const toolbox = readTools(fourTools);
const failed = { name: 'read_file', input: {}, text: 'no', isError: true };
const result = { name: 'calculator', input: {}, text: '6 * 7 = 42', isError: false };

it('recalls the tools that worked, and the last value', () => {
  const { earlierTools, earlierValue, asked } = recall(
    [{ question: '6 * 7', rounds: [[result, failed]] }],
    toolbox,
  );
  expect(earlierTools.map(({ name }) => name)).toEqual(['calculator']);
  expect(earlierValue).toBe('42');
  expect(asked).toBeUndefined();
});

it('recalls what was asked for in the last turn only', () => {
  const time = { question: 'what time is it?', rounds: [] };
  const other = { question: '6 * 7', rounds: [] };
  expect(recall([other, time], toolbox).asked).toMatchObject({ slot: { name: 'timeZone' } });
  expect(recall([time, other], toolbox).asked).toBeUndefined();
});

it('recalls nothing of no turn', () => {
  expect(recall([], toolbox)).toMatchObject({ earlierTools: [], earlierValue: undefined });
});
