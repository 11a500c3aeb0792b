import { playRow } from './column.js';
import { allColumns } from './columns.js';
import { allClients } from './conversations/clients.js';
import { pictures } from './conversations/pictures.js';
import { conversationIds, playConversation } from './conversations/rows.js';
import { kinds, problemOf } from './kinds.js';
import { kindsTable, partsOf, staleParts, writePages } from './page.js';
import { rowIds } from './rows.js';
import { type Cell, notesOf, summaryOf, tableOf } from './table.js';

const help = `npm run client-conformance -- [--write]

Runs real chat clients against a Millrace server on 127.0.0.1. Prints the result of each client in each scenario, of each
client in each conversation, and the lines of code of each kind of server. Exits with 1 if a client fails, or if
docs/clients.md or a page of the suite is out of date. --write updates them.`;

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
  const clients = await allClients();
  const cells: Cell[] = [];
  const problems: string[] = [];
  // A client may still run when its cell is found wrong.
  process.on('unhandledRejection', (error) => problems.push(`Unhandled: ${String(error)}`));
  for (const row of rowIds) {
    for (const column of columns) cells.push(await playRow(row, column));
  }
  for (const kind of kinds) {
    const problem = await problemOf(kind);
    if (problem !== undefined) problems.push(problem);
  }
  const conversations: Cell[] = [];
  for (const id of conversationIds) {
    for (const client of clients) conversations.push(await playConversation(id, client));
  }
  for (const { name, play: playPicture } of pictures) {
    await playPicture().catch((error: unknown) => problems.push(`${name}: ${String(error)}`));
  }
  const versions = [...columns, ...clients].map(({ version }) => version);
  const parts = partsOf(versions, cells, conversations);
  const tables = [tableOf(cells), tableOf(conversations), kindsTable()];
  console.log(`${tables.join('\n\n')}\n`);
  const wrong = [notesOf(cells, 'wrong'), notesOf(conversations, 'wrong')];
  for (const note of [...wrong, ...problems]) if (note !== '') console.log(note);
  const isRight = problems.length === 0 && wrong.every((note) => note === '');
  if (isWritten && isRight) writePages(parts);
  const stale = staleParts(parts);
  if (stale.length > 0) console.log(`Out of date (${stale.join(', ')}). Run this with --write.`);
  console.log(summaryOf([...cells, ...conversations]));
  console.log(`${pictures.length} odd pictures of a conversation were sent.`);
  return isRight && stale.length === 0 ? 0 : 1;
}
