/** One measurement that is printed: a title, rows below a header, and what is not as it must be. */
export interface Section {
  readonly title: string;
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Nothing, where all is well. */
  readonly wrongs: readonly string[];
}

/** Writes a section as a table. The first column is of words, all others are of numbers. */
export const tableOf = ({ title, header, rows, wrongs }: Section): string => {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const lines = all.map((row) =>
    row
      .map((cell, column) => pad(cell, column, widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return [title, '', ...lines, '', ...verdict(wrongs)].join('\n');
};

const pad = (cell: string, column: number, width: number): string =>
  column === 0 ? cell.padEnd(width) : cell.padStart(width);

const verdict = (wrongs: readonly string[]): readonly string[] =>
  wrongs.length === 0 ? ['All is as it must be.'] : wrongs.map((wrong) => `WRONG: ${wrong}.`);
