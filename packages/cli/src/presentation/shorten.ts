import { printable } from './printable.js';
import type { Theme } from './theme.js';

/** Puts a text on one line of at most `room` characters; what is left out shows as a mark. */
export const oneLine = (text: string, room: number, { unicode }: Pick<Theme, 'unicode'>): string =>
  clip(printable(text).trim().replaceAll(/\s+/g, ' '), room, unicode ? '…' : '...');

/** The first lines of a text, each of at most `room` characters, and one that counts those left out. */
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
