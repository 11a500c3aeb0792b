import { printable } from './printable.js';
import type { Theme } from './theme.js';
import { columnsOf } from './columns.js';

/** Shortens text to one line of up to `room` columns, with an ellipsis if it was cut. */
export const oneLine = (text: string, room: number, { unicode }: Pick<Theme, 'unicode'>): string =>
  clip(printable(text).trim().replaceAll(/\s+/g, ' '), room, unicode ? '…' : '...');

/** The first lines, each with up to `room` columns, and a line with the number of omitted ones. */
export const firstLines = (
  text: string,
  room: number,
  count: number,
  { unicode }: Pick<Theme, 'unicode'>,
): readonly string[] => {
  const more = unicode ? '…' : '...';
  const lines = printable(text)
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '');
  const shown = lines.slice(0, count).map((line) => clip(line, room, more));
  const left = lines.length - shown.length;
  return left === 0 ? shown : [...shown, `${more} ${left} more ${left === 1 ? 'line' : 'lines'}`];
};

const clip = (line: string, room: number, mark: string): string => {
  const most = room * 4;
  if (line.length <= most && columnsOf(line) <= room) return line;
  let columns = 0;
  const characters = Array.from(line.slice(0, most));
  const end = characters.findIndex((character) => {
    columns += columnsOf(character);
    return columns > room - mark.length;
  });
  return `${characters.slice(0, Math.max(end, 1)).join('')}${mark}`;
};
