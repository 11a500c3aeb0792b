import { expect, it } from '@jest/globals';
import { commandFor } from './hints.js';

it.each([
  [undefined, 'npx @millrace/cli resume 0123abcd'],
  ['./runs', 'npx @millrace/cli resume 0123abcd --store ./runs'],
  ["it's mine", String.raw`npx @millrace/cli resume 0123abcd --store 'it'\''s mine'`],
  ['postgres://user:secret@db/runs', 'npx @millrace/cli resume 0123abcd --store postgres://…'],
])('X10: with the store %j it is %s', (store, command) => {
  expect(commandFor('resume', '0123abcdef', { store })).toBe(command);
});
