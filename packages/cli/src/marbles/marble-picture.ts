import type { AgentEvent } from 'millrace';
import { asciiAlphabet, cellsOf, unicodeAlphabet, writeCells } from './lane.js';
import { placeMarks } from './layout.js';
import { type Mark, marksOf } from './marks.js';
import { milliseconds } from '../presentation/milliseconds.js';
import { plainTheme, type Theme } from '../presentation/theme.js';

/**
 * Draws a call as a marble diagram with one lane per phase and tool, on a common time axis.
 *
 * Uses the whole width (default: 72 columns, minimum 32), and ends with a legend. A pure function of the events; empty
 * if there is nothing to draw.
 */
export const marblePicture = (
  events: readonly AgentEvent[],
  theme: Partial<Theme> = {},
): string => {
  const { colors, unicode, width } = { ...plainTheme, ...theme };
  const alphabet = unicode ? unicodeAlphabet : asciiAlphabet;
  const marks = marksOf(events);
  const lanes = [...new Set(marks.map(({ lane }) => lane))];
  if (lanes.length === 0) return '';
  const room = Math.max(width, 32);
  const margin = Math.min(Math.max(...lanes.map((lane) => lane.length)), Math.floor(room / 3)) + 2;
  const columns = room - margin;
  const placed = placeMarks(marks, columns);
  const drawn = lanes.map((lane) => ({
    label: labelOf(lane, margin),
    cells: cellsOf(
      placed.filter((mark) => mark.lane === lane),
      columns,
    ),
  }));
  const legend = legendEntries
    .filter(([sign]) => drawn.some(({ cells }) => cells.includes(sign)))
    .map(([sign, meaning]) => `${alphabet[sign]} ${meaning}`);
  const notes = [`${' '.repeat(margin)}${axisOf(marks, columns)}`, ...inLines(legend, room)];
  return [
    ...drawn.map(({ label, cells }) => label + writeCells(cells, alphabet, colors)),
    ...notes.map(colors.dim),
  ].join('\n');
};

const legendEntries = [
  ['thought', 'thought'],
  ['text', 'text'],
  ['call', 'tool call'],
  ['progress', 'progress'],
  ['result', 'result'],
  ['error', 'error'],
  ['interrupted', 'interrupted'],
  ['end', 'end'],
] as const;

const labelOf = (lane: string, margin: number): string =>
  (lane.length > margin - 2 ? `${lane.slice(0, margin - 3)}~` : lane).padEnd(margin);

const axisOf = (marks: readonly Mark[], columns: number): string => {
  const total = milliseconds((marks.at(-1)?.at ?? 0) - (marks[0]?.at ?? 0));
  return `0${total.padStart(columns - 1)}`;
};

const inLines = (entries: readonly string[], room: number): readonly string[] =>
  entries.reduce<readonly string[]>((lines, entry) => {
    const last = lines.at(-1);
    const longer = last === undefined ? entry : `${last}  ${entry}`;
    return longer.length <= room ? [...lines.slice(0, -1), longer] : [...lines, entry];
  }, []);
