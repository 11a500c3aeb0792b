import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { type Vendor, vendors } from './vendors.test-support.js';

/** What a cell has, by the heading of its column, if the tests of a vendor show the feature; and the title of the test that does. */
const columns: Readonly<Record<string, readonly [test: string, cell: (it: Vendor) => string]>> = {
  Streaming: ['streams text, and reports its usage and facts', () => '●'],
  Tools: ['runs parallel tool calls, and sends their results back', () => '●'],
  Parallel: ['runs parallel tool calls, and sends their results back', () => '●'],
  'Reasoning kept': [
    'keeps of a thought: ${keeps}',
    ({ keeps }) => (keeps === 'nothing' ? '' : `● ${keeps}`),
  ],
  Images: ['sends images', () => '●'],
  'Structured output': [
    'answers in the form of a schema, natively and with other tools',
    () => '●',
  ],
  Citations: ['shows sources as citations', ({ cites }) => (cites ? '●' : '')],
  Faults: ['an error within an answer is an error', () => '●'],
};

const read = (file: string): string => readFileSync(new URL(file, import.meta.url), 'utf8');
const [[, ...heads] = [], , ...rows] = read('../VENDORS.md')
  .split('\n\n')
  .filter((it) => it.startsWith('| Vendor'))
  .flatMap((it) => it.trim().split('\n'))
  .map((line) =>
    line
      .split('|')
      .map((cell) => cell.trim())
      .slice(1, -1),
  );

describe('the table of vendors', () => {
  it('has the vendors and the features that are tested', () => {
    expect(heads).toEqual(Object.keys(columns));
    expect(rows.map(([name = '']) => name.replace(' (chat)', '')).sort()).toEqual(
      vendors.map(({ name }) => name).sort(),
    );
  });

  it.each(vendors.map((it) => [it.name, it] as const))('is right about %s', (name, vendor) => {
    const [, ...cells] = rows.find(([title]) => title?.replace(' (chat)', '') === name) ?? [];
    expect(cells).toEqual(Object.values(columns).map(([, cell]) => cell(vendor)));
  });

  it.each(Object.entries(columns))('has a test of the column %s', (_, [title]) => {
    const tests = read('./vendors.slow.test.ts');
    expect([`it('${title}`, `it(\`${title}`].some((it) => tests.includes(it))).toBe(true);
  });
});
