import { printable } from './printable.js';
import type { Theme } from './theme.js';

/** Shortens text to one line of up to `room` characters, with an ellipsis if it was cut. */
export const oneLine = (text: string, room: number, { unicode }: Pick<Theme, 'unicode'>): string =>
  clip(printable(text).trim().replaceAll(/\s+/g, ' '), room, unicode ? '…' : '...');

/** The first lines, each with up to `room` characters, and a line with the number of omitted ones. */
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
  if (line.length <= room) return line;
  const characters = Array.from(line);
  return characters.length <= room
    ? line
    : `${characters.slice(0, Math.max(room - mark.length, 1)).join('')}${mark}`;
};
