import { describe, expect, it } from '@jest/globals';
import { playRow } from './column.js';
import { columns } from './columns.js';
import { clients } from './conversations/clients.js';
import { pictures } from './conversations/pictures.js';
import { conversationIds, playConversation } from './conversations/rows.js';
import { kinds, problemOf } from './kinds.js';
import { kindsTable, partOfPage } from './page.js';
import { rowIds, rows } from './rows.js';
import { shownIn } from './table.js';

describe.each(columns.map((column) => [column.name, column] as const))('%s', (_, column) => {
  it.each(rowIds.map((id) => [rows[id].name, id] as const))('%s', async (__, id) => {
    const cell = await playRow(id, column);
    expect(cell).not.toMatchObject({ result: 'wrong' });
    expect(cellOf('table', column.name, rows[id].name)).toBe(shownIn(cell));
  });
});

describe.each(clients.map((client) => [client.name, client] as const))(
  'conversations: %s',
  (_, client) => {
    it.each(conversationIds)('%s', async (id) => {
      const cell = await playConversation(id, client);
      expect(cell).not.toMatchObject({ result: 'wrong' });
      expect(cellOf('conversations', client.name, cell.row)).toBe(shownIn(cell));
    });
  },
);

describe('an odd picture of a conversation', () => {
  it.each(pictures)('changes nothing that others see: $name', async ({ play }) => {
    await expect(play()).resolves.toBeUndefined();
  });
});

/** What the page shows for a client in a row of a table. */
const cellOf = (part: string, client: string, row = ''): string | undefined => {
  const [head = '', , ...lines] = partOfPage(part).split('\n');
  const line = lines.find((it) => cellsOf(it)[1] === row) ?? '';
  return cellsOf(line)[cellsOf(head).indexOf(client)];
};

const cellsOf = (line: string): readonly string[] => line.split('|').map((cell) => cell.trim());

describe('a kind of server', () => {
  it.each(kinds)('answers a client: $name', async (kind) => {
    expect(await problemOf(kind)).toBeUndefined();
  });

  it('has as many lines as docs/clients.md says', () => {
    expect(partOfPage('servers')).toBe(kindsTable());
  });
});
