import { markdownTable } from '../table.js';
import { conversationRows, playConversation } from './rows.js';
import type { ConversationRow } from './rows/scene.js';
import type { Client } from './tab.js';

/** The result of a cell of the table of conversations. */
export interface PlayedConversation {
  readonly row: ConversationRow;
  readonly client: Client;
  readonly result: 'passed' | 'wrong' | 'protocol';
  /** What the client ended with, what is wrong, or why it cannot be played. */
  readonly says: string;
}

export const conversationIds = Object.keys(conversationRows);

export const playConversationCell = async (
  id: string,
  client: Client,
): Promise<PlayedConversation> => {
  const row = conversationRows[id];
  if (row === undefined) throw new Error(`There is no row '${id}'.`);
  const reason = client.missing?.[id];
  if (reason !== undefined) return { row, client, result: 'protocol', says: reason };
  try {
    return { row, client, result: 'passed', says: await playConversation(row, client) };
  } catch (error) {
    return { row, client, result: 'wrong', says: String(error) };
  }
};

/** The table, in Markdown. */
export const conversationsTable = (cells: readonly PlayedConversation[]): string => {
  const clients = [...new Set(cells.map(({ client }) => client))];
  const rows = [...new Set(cells.map(({ row }) => row))];
  const shown = { passed: undefined, wrong: '**wrong**', protocol: '–' };
  return markdownTable([
    ['Row', ...clients.map(({ name }) => name)],
    ...rows.map((row) => [
      row.name,
      ...clients.map((client) => {
        const cell = cells.find((it) => it.row === row && it.client === client);
        return cell === undefined ? '' : (shown[cell.result] ?? cell.says);
      }),
    ]),
  ]);
};

/** What happens in each row. */
export const conversationRowsTable = (): string =>
  markdownTable([
    ['Row', 'Description'],
    ...Object.values(conversationRows).map(({ name, about }) => [name, about]),
  ]);

/** The cells with this result, each with its reason. */
export const conversationNotes = (
  cells: readonly PlayedConversation[],
  result: PlayedConversation['result'],
): string =>
  cells
    .filter((cell) => cell.result === result)
    .map(({ row, client, says }) => `- ${client.name} (${row.name}): ${says}`)
    .join('\n');
