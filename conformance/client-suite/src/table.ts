import type { Check, Column } from './column.js';
import { playOn } from './stage.js';
import { type RowId, rowIds, rows } from './rows.js';

/** The result of a cell. */
export interface Played {
  readonly row: RowId;
  readonly column: Column;
  readonly result: 'passed' | 'wrong' | 'protocol' | 'server';
  /** What the client ended with, what is wrong, or why there is nothing. */
  readonly says: string;
}

/** Plays one row with one client. */
export const playCell = async (row: RowId, column: Column): Promise<Played> => {
  const cell = column.cells[row];
  if (typeof cell !== 'function') {
    return { row, column, result: cell.missing, says: cell.reason };
  }
  try {
    return { row, column, result: 'passed', says: await played(row, column, cell) };
  } catch (error) {
    return { row, column, result: 'wrong', says: String(error) };
  }
};

const played = (row: RowId, { aiSdk = 6 }: Column, check: Check): Promise<string> =>
  playOn(rows[row].scene, aiSdk, check);

/** The table, in Markdown. */
export const tableOf = (columns: readonly Column[], cells: readonly Played[]): string =>
  markdownTable([
    ['Row', ...columns.map(({ name }) => name)],
    ...rowIds.map((id) => [
      rows[id].name,
      ...columns.map((column) =>
        textOf(cells.find((cell) => cell.row === id && cell.column === column)),
      ),
    ]),
  ]);

const textOf = (cell: Played | undefined): string => {
  switch (cell?.result) {
    case 'passed':
      return cell.says;
    case 'wrong':
      return '**wrong**';
    case 'server':
      return 'not built';
    default:
      return '–';
  }
};

/** A table as Prettier formats it. */
export const markdownTable = (lines: readonly (readonly string[])[]): string => {
  const [head = []] = lines;
  const widths = head.map((_, at) => Math.max(3, ...lines.map((line) => line[at]?.length ?? 0)));
  const lineOf = (line: readonly string[]) =>
    `| ${widths.map((width, at) => (line[at] ?? '').padEnd(width)).join(' | ')} |`;
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  const [first = '', ...others] = lines.map(lineOf);
  return [first, rule, ...others].join('\n');
};

/** The reasons of cells with these results, each with its clients and rows. */
export const notesOf = (cells: readonly Played[], results: readonly Played['result'][]): string => {
  const chosen = cells.filter(({ result }) => results.includes(result));
  return [...new Set(chosen.map(({ says }) => says))]
    .map((reason) => {
      const alike = chosen.filter(({ says }) => says === reason);
      const names = new Set(alike.map(({ column }) => column.name));
      const about = new Set(alike.map(({ row }) => rows[row].name));
      return `- ${[...names].join('; ')} (${[...about].join(', ')}): ${reason}`;
    })
    .join('\n');
};

export const summaryOf = (cells: readonly Pick<Played, 'result'>[]): string => {
  const count = (wanted: Played['result']) =>
    cells.filter(({ result }) => result === wanted).length;
  return `${count('passed')} passed, ${count('wrong')} wrong, ${count('protocol')} not in the protocol, ${count('server')} not built`;
};
