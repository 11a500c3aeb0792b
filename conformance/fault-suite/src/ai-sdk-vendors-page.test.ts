import { expect, it } from '@jest/globals';
import { faults } from '@millrace/fault-server';
import { readFileSync } from 'node:fs';
import { differences } from './ai-sdk-differences.test-data.js';

it('the page of the vendors of the AI SDK has the numbers of differences', () => {
  const file = new URL('../../../packages/ai-sdk/VENDORS.md', import.meta.url);
  const page = readFileSync(file, 'utf8');
  const [, ...said] = /plays (\d+) .*?\. (\d+) end as .*?The other (\d+)\]/s.exec(page) ?? [];
  const rows = [...page.matchAll(/^\| (\d+) +\| [A-Z]/gm)];
  const sum = rows.reduce((total, [, count]) => total + Number(count), 0);
  const pinned = differences.flatMap((it) => Object.values(it.faults).flatMap(Object.keys)).length;
  const all = faults.reduce((total, { wires }) => total + wires.length, 0);
  expect([...said.map(Number), sum]).toEqual([all, all - pinned, pinned, pinned]);
});
