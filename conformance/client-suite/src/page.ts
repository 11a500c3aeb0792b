import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Column } from './column.js';
import { suite } from './columns.js';
import { kinds, linesOf } from './kinds.js';
import { rowIds, rows } from './rows.js';
import { markdownTable, notesOf, type Played, tableOf } from './table.js';

export const pagePath = join(suite, '..', '..', 'docs', 'clients.md');

/** The kinds of servers, with their lines of code. */
export const kindsTable = (): string =>
  markdownTable([
    ['Server', 'Lines'],
    ...kinds.map((kind) => [
      `[${kind.name}](../conformance/client-suite/src/servers/${kind.file}.ts)`,
      String(linesOf(kind)),
    ]),
  ]);

/** The rows, with what happens in each. */
export const rowsTable = (): string =>
  markdownTable([['Row', 'Description'], ...rowIds.map((id) => [rows[id].name, rows[id].about])]);

/** What a run writes to the page, by the names of its places. */
export const partsOf = (columns: readonly Column[], cells: readonly Played[]) => ({
  table: tableOf(columns, cells),
  missing: notesOf(cells, ['protocol', 'server']),
  versions: [...new Set(columns.map(({ version }) => version))].join(', '),
  servers: kindsTable(),
});

/** What the page has at a place. */
export const partOfPage = (name: string): string => placeOf(name).exec(page())?.[2]?.trim() ?? '';

const page = (): string => readFileSync(pagePath, 'utf8');

const placeOf = (name: string): RegExp =>
  new RegExp(`(<!-- ${name} -->\n)([^]*?)(<!-- /${name} -->)`, 'u');

export const writePage = (parts: Readonly<Record<string, string>>): void => {
  const written = Object.entries(parts).reduce((text, [name, part]) => {
    if (!placeOf(name).test(text)) throw new Error(`${pagePath} has no place '${name}'.`);
    return text.replace(
      placeOf(name),
      (_, begin: string, __, end: string) => `${begin}\n${part}\n\n${end}`,
    );
  }, page());
  writeFileSync(pagePath, written);
};
