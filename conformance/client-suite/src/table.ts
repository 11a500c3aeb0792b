/** A cell of a table: the outcome of a row, played by a client. */
export interface Cell {
  readonly row: string;
  readonly client: string;
  readonly result: 'passed' | 'wrong' | 'protocol';
  /** What the client ended with, what is wrong, or why it cannot be played. */
  readonly says: string;
}

/** Plays a cell; a string is the reason why it cannot be played. */
export const playCell = async (
  row: { readonly name: string },
  client: { readonly name: string },
  play: string | (() => Promise<string>),
): Promise<Cell> => {
  const names = { row: row.name, client: client.name };
  if (typeof play === 'string') return { ...names, result: 'protocol', says: play };
  try {
    return { ...names, result: 'passed', says: await play() };
  } catch (error) {
    return { ...names, result: 'wrong', says: String(error) };
  }
};

/** The table, in Markdown. */
export const tableOf = (cells: readonly Cell[]): string => {
  const clients = [...new Set(cells.map(({ client }) => client))];
  return markdownTable([
    ['Row', ...clients],
    ...[...new Set(cells.map(({ row }) => row))].map((row) => [
      row,
      ...clients.map((client) =>
        shownIn(cells.find((cell) => cell.row === row && cell.client === client)),
      ),
    ]),
  ]);
};

/** What the table has for a cell. */
export const shownIn = (cell: Cell | undefined): string => {
  if (cell?.result === 'passed') return cell.says;
  return cell?.result === 'wrong' ? '**wrong**' : '–';
};

/** What happens in each row, in Markdown. */
export const rowsTable = (
  rows: Readonly<Record<string, { readonly name: string; readonly about: string }>>,
): string =>
  markdownTable([
    ['Row', 'Description'],
    ...Object.values(rows).map(({ name, about }) => [name, about]),
  ]);

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

/** The reasons of cells with this result, each with its clients and rows. */
export const notesOf = (cells: readonly Cell[], wanted: Cell['result']): string => {
  const chosen = cells.filter(({ result }) => result === wanted);
  return [...new Set(chosen.map(({ says }) => says))]
    .map((reason) => {
      const alike = chosen.filter(({ says }) => says === reason);
      const clients = new Set(alike.map(({ client }) => client));
      const about = new Set(alike.map(({ row }) => row));
      return `- ${[...clients].join('; ')} (${[...about].join(', ')}): ${reason}`;
    })
    .join('\n');
};

export const summaryOf = (cells: readonly Pick<Cell, 'result'>[]): string => {
  const count = (wanted: Cell['result']) => cells.filter(({ result }) => result === wanted).length;
  return `${count('passed')} passed, ${count('wrong')} wrong, ${count('protocol')} not in the protocol`;
};
