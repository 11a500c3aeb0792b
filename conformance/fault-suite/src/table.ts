import { wires } from '@millrace/fault-server';
import type { Played } from './play-fault.js';

/** The columns of the table. */
const header = ['fault', 'wire', 'what came out', 'requests', 'ms', 'closed by us', ''];

/** Writes what came of the faults as a table, and below it what is not as it must be. */
export const tableOf = (played: readonly Played[]): string => {
  const rows = played.map(({ fault, wire, outcome, seen, ms, wrongs }) => [
    fault.id,
    wire,
    outcome,
    String(seen.length),
    String(ms),
    seen.some(({ closedEarly }) => closedEarly) ? 'yes' : 'no',
    wrongs.length === 0 ? '' : 'WRONG',
  ]);
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const lines = all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return [...lines, '', summaryOf(played), ...complaintsOf(played)].join('\n');
};

const summaryOf = (played: readonly Played[]): string => {
  const wrong = played.filter(({ wrongs }) => wrongs.length > 0).length;
  const faults = new Set(played.map(({ fault }) => fault.id)).size;
  return `${faults} faults, ${played.length} calls over ${wires.length} wires, ${wrong} not as they must be.`;
};

const complaintsOf = (played: readonly Played[]): readonly string[] =>
  played
    .filter(({ wrongs }) => wrongs.length > 0)
    .map(({ fault, wire, wrongs }) => `${fault.id} (${wire}): ${wrongs.join('; ')}.`);
