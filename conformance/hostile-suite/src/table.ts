import type { Row } from './scene.js';

const header = ['promise', 'attack', ''];
/** So that a row fits into a terminal. */
const widest = 76;

/** A row for each attack, the total, and what attackers got. */
export const tableOf = (rows: readonly Row[]): string => {
  const cells = rows.map(({ promise, attack, broke }) => [
    cut(promise),
    cut(attack),
    broke === undefined ? 'held' : 'BROKE',
  ]);
  const all = [header, ...cells];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const lines = all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return [...lines, '', totalOf(rows), ...complaintsOf(rows)].join('\n');
};

const totalOf = (rows: readonly Row[]): string =>
  `${rows.filter(({ broke }) => broke === undefined).length} of ${rows.length} attacks held.`;

const complaintsOf = (rows: readonly Row[]): readonly string[] =>
  rows.flatMap(({ promise, attack, broke }) =>
    broke === undefined ? [] : [`BROKE: ${promise}: ${attack}: ${broke}`],
  );

/** Names of attacks hold odd characters on purpose; a terminal must not see them. */
const cut = (text: string): string => {
  const plain = text.replaceAll(/[^\x20-\x7e]/g, '?');
  return plain.length <= widest ? plain : `${plain.slice(0, widest - 1)}…`;
};
