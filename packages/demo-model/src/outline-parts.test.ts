import { expect, it } from '@jest/globals';
import { fourTools } from './declarations.test-data.js';
import { mostParts, outlineParts } from './outline-parts.js';
import { readTools } from './read-tools.js';

const toolbox = readTools(fourTools);
const partsOf = (question: string): readonly string[] =>
  outlineParts(question, toolbox).parts.map(
    ({ text, choice }) => `${text} → ${choice?.tool.name ?? ''}`,
  );

it.each([
  ['2 + 2 and the time in Rome', ['2 + 2 → calculator', 'the time in Rome → clock']],
  ['the time in Rome and Oslo', ['the time in Rome and Oslo → clock']],
  ['explain streams and backpressure', ['explain streams and backpressure → ']],
  ['the sum of 3 * 2, 4 and 5', ['the sum of 3 * 2, 4 and 5 → calculator']],
  ['Hello! Please, 2 + 2', ['Please, 2 + 2 → calculator']],
  ['Thanks', []],
])('%s', (question, expected) => {
  expect(partsOf(question)).toEqual(expected);
});

it('works on so many parts, and says that there are more', () => {
  const outlined = outlineParts('6 * 7. '.repeat(mostParts + 1), toolbox);
  expect(outlined.parts).toHaveLength(mostParts);
  expect(outlined.isCut).toBe(true);
});
