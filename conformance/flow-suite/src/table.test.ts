import { expect, it } from '@jest/globals';
import { tableOf } from './table.js';

const section = {
  title: 'A title',
  header: ['way', 'ms'],
  rows: [
    ['for await', '12'],
    ['subscribe', '3'],
  ],
};

it('writes words to the left and numbers to the right', () => {
  expect(tableOf({ ...section, wrongs: [] })).toBe(
    'A title\n\nway        ms\nfor await  12\nsubscribe   3\n\nAll is as it must be.',
  );
});

it('says what is wrong', () => {
  expect(tableOf({ ...section, wrongs: ['it leaks', 'it hangs'] })).toMatch(
    /\n\nWRONG: it leaks\.\nWRONG: it hangs\.$/,
  );
});
