import { expect, it } from '@jest/globals';
import { formatTable } from './table.js';

it('aligns numbers at the right and words at the left, and fills short rows up', () => {
  const table = formatTable({
    title: 'Title',
    about: 'What was done.',
    columns: [{ name: 'adapter', isWords: true }, { name: 'ms' }, { name: 'note', isWords: true }],
    rows: [
      ['floor', '1.00', 'by hand'],
      ['millrace', '12.5'],
      ['x', 'failed'],
    ],
    notes: ['x failed: no reason.'],
  });
  expect(table).toBe(`Title
What was done.

adapter       ms  note
floor       1.00  by hand
millrace    12.5
x         failed

x failed: no reason.`);
});

it('breaks what was done into lines', () => {
  const about = 'word '.repeat(60).trim();
  const [, ...lines] = formatTable({ title: '', about, columns: [], rows: [] })
    .trimEnd()
    .split('\n');
  expect(lines.join(' ').trim()).toBe(about);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(110);
});
