import { allColumns } from './columns.js';
import { kinds, problemOf } from './kinds.js';
import { kindsTable, partOfPage, partsOf, rowsTable, writePage } from './page.js';
import { rowIds } from './rows.js';
import { notesOf, playCell, type Played, summaryOf, tableOf } from './table.js';

const help = `npm run client-conformance -- [--write]

Runs real chat clients against a Millrace server on 127.0.0.1. Prints the result of each client in each scenario, the
scenarios, and the lines of code of each kind of server. Exits with 1 if a client fails, or if docs/clients.md is out of
date. --write updates docs/clients.md.`;

const words = process.argv.slice(2);
if (words.some((word) => word !== '--write')) {
  const isHelp = words.every((word) => word === '--help' || word === '-h');
  (isHelp ? console.log : console.error)(help);
  process.exitCode = isHelp ? 0 : 2;
} else {
  process.exitCode = await play(words.length > 0);
}

async function play(isWritten: boolean): Promise<number> {
  const columns = await allColumns();
  const cells: Played[] = [];
  const problems: string[] = [];
  // A client may still run when its cell is found wrong.
  process.on('unhandledRejection', (error) => problems.push(`Unhandled: ${String(error)}`));
  for (const row of rowIds) {
    for (const column of columns) cells.push(await playCell(row, column));
  }
  for (const kind of kinds) {
    const problem = await problemOf(kind);
    if (problem !== undefined) problems.push(problem);
  }
  const parts = partsOf(columns, cells);
  console.log(`${tableOf(columns, cells)}\n\n${rowsTable()}\n\n${kindsTable()}\n`);
  for (const note of [notesOf(cells, ['wrong']), ...problems]) if (note !== '') console.log(note);
  const isRight = problems.length === 0 && cells.every(({ result }) => result !== 'wrong');
  if (isWritten && isRight) writePage(parts);
  const stale = Object.entries(parts).filter(([name, part]) => partOfPage(name) !== part);
  if (stale.length > 0) {
    const names = stale.map(([name]) => name).join(', ');
    console.log(`docs/clients.md is out of date (${names}). Run this with --write.`);
  }
  console.log(summaryOf(cells));
  return isRight && stale.length === 0 ? 0 : 1;
}
