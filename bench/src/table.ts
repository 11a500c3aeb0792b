/** One table of results: what was done, and a row for each adapter. */
export interface Table {
  readonly title: string;
  /** A line or two that say what was done. */
  readonly about: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly string[])[];
  /** What stands below it: what failed, and why. */
  readonly notes?: readonly string[];
}

/** The head of a column. Numbers stand at its right, words at its left. */
export interface Column {
  readonly name: string;
  readonly isWords?: boolean;
}

/** Writes a table with aligned columns. A short row is filled up with nothing. */
export const formatTable = ({ title, about, columns, rows, notes = [] }: Table): string => {
  const cells = [columns.map(({ name }) => name), ...rows];
  const widths = columns.map((_, place) =>
    Math.max(...cells.map((row) => (row[place] ?? '').length)),
  );
  const lines = cells.map((row) =>
    columns
      .map(({ isWords }, place) => {
        const [cell, width] = [row[place] ?? '', widths[place] ?? 0];
        return isWords ? cell.padEnd(width) : cell.padStart(width);
      })
      .join('  ')
      .trimEnd(),
  );
  return [title, wrapped(about), '', ...lines, ...(notes.length > 0 ? ['', ...notes] : [])].join(
    '\n',
  );
};

/** Breaks a text into lines of so many characters, between words. */
export const wrapped = (text: string, lineLength = 110): string => {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > lineLength) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join('\n');
};
