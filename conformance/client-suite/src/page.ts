import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { suite } from './columns.js';
import { conversationRows } from './conversations/rows.js';
import { kinds, linesOf } from './kinds.js';
import { rows } from './rows.js';
import { type Cell, markdownTable, notesOf, rowsTable, tableOf } from './table.js';

const docsPage = join(suite, '..', '..', 'docs', 'clients.md');
const readme = join(suite, 'README.md');
const conversationsPage = join(suite, 'conversations.md');

/** The kinds of servers, with their lines of code. */
export const kindsTable = (): string =>
  markdownTable([
    ['Server', 'Lines'],
    ...kinds.map((kind) => [
      `[${kind.name}](../conformance/client-suite/src/servers/${kind.file}.ts)`,
      String(linesOf(kind)),
    ]),
  ]);

/** What a run writes to the pages, by the names of their places. */
export const partsOf = (
  versions: readonly string[],
  cells: readonly Cell[],
  conversations: readonly Cell[],
) => ({
  table: tableOf(cells),
  missing: notesOf(cells, 'protocol'),
  conversations: tableOf(conversations),
  unplayed: notesOf(conversations, 'protocol'),
  versions: [...new Set(versions)].join(', '),
  servers: kindsTable(),
});

/** What a run writes to the README. */
export const partsOfReadme = () => ({
  rows: rowsTable(rows),
  conversations: rowsTable(conversationRows),
});

/** The page that has a place of `partsOf`. */
const pageOf = (name: string): string => {
  if (name === 'missing') return readme;
  return name === 'conversations' || name === 'unplayed' ? conversationsPage : docsPage;
};

/** What a page has at a place. */
export const partOfPage = (name: string, path = pageOf(name)): string =>
  placeOf(name).exec(readFileSync(path, 'utf8'))?.[2]?.trim() ?? '';

type Parts = Readonly<Record<string, string>>;

const pages = (parts: Parts): readonly (readonly [string, Parts])[] => [
  ...Object.entries(parts).map(([name, part]) => [pageOf(name), { [name]: part }] as const),
  [readme, partsOfReadme()],
];

/** The places that are out of date. */
export const staleParts = (parts: Parts): readonly string[] =>
  pages(parts).flatMap(([path, own]) =>
    Object.entries(own)
      .filter(([name, part]) => partOfPage(name, path) !== part)
      .map(([name]) => `${basename(path)}: ${name}`),
  );

const placeOf = (name: string): RegExp =>
  new RegExp(`(<!-- ${name} -->\n)([^]*?)(<!-- /${name} -->)`, 'u');

export const writePages = (parts: Parts): void => {
  for (const [path, own] of pages(parts)) {
    const page = readFileSync(path, 'utf8');
    const written = Object.entries(own).reduce((text, [name, part]) => {
      if (!placeOf(name).test(text)) throw new Error(`${path} has no place '${name}'.`);
      return text.replace(
        placeOf(name),
        (_, begin: string, __, end: string) => `${begin}\n${part}\n\n${end}`,
      );
    }, page);
    writeFileSync(path, written);
  }
};
