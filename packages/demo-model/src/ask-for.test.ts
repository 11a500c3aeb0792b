import { expect, it } from '@jest/globals';
import { askFor } from './ask-for.js';
import { declare } from './declarations.test-data.js';
import { readTools } from './read-tools.js';

it.each([
  [
    { type: 'string', description: 'A place.', examples: ['Oslo'] },
    ' (A place). Which one do you mean? For example “Oslo”.',
  ],
  [{ enum: ['a', 'b'] }, '. Which one do you mean? One of: a, b.'],
  [{ type: 'number' }, '. Which one do you mean? For example “5”.'],
  [{ type: 'object' }, '. Which one do you mean?'],
])('asks for %j', (rules, expected) => {
  const [tool] = readTools([declare('show', 'Shows.', { itsName: rules })]).tools;
  const [slot] = tool?.slots ?? [];
  if (tool === undefined || slot === undefined) throw new Error('There is no slot.');
  expect(askFor({ status: 'missing', text: '', tool, slot, input: {} })).toBe(
    `The show needs the its name${expected}`,
  );
});
