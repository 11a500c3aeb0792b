import { describe, expect, it } from '@jest/globals';
import { columns } from './columns.js';
import { kinds, problemOf } from './kinds.js';
import { kindsTable, partOfPage } from './page.js';
import { rowIds, rows } from './rows.js';
import { playCell } from './table.js';

describe.each(columns.map((column) => [column.name, column] as const))('%s', (_, column) => {
  it.each(rowIds.map((id) => [rows[id].name, id] as const))('%s', async (__, id) => {
    const { result, says } = await playCell(id, column);
    expect([result, says]).not.toEqual(['wrong', says]);
    const [head = '', , ...lines] = partOfPage('table').split('\n');
    const at = cellsOf(head).indexOf(column.name);
    const line = lines.find((it) => cellsOf(it)[1] === rows[id].name) ?? '';
    const shown = { passed: says, wrong: '', protocol: '–', server: 'not built' }[result];
    expect(cellsOf(line)[at]).toBe(shown);
  });
});

const cellsOf = (line: string): readonly string[] => line.split('|').map((cell) => cell.trim());

describe('a kind of server', () => {
  it.each(kinds)('answers a client: $name', async (kind) => {
    expect(await problemOf(kind)).toBeUndefined();
  });

  it('has as many lines as docs/clients.md says', () => {
    expect(partOfPage('servers')).toBe(kindsTable());
  });
});
