import { readdir } from 'node:fs/promises';
import type { ConfinedPath } from './confined-path.js';

const maxNames = 200;

/** Lists the visible entries of a directory, sorted by name. Directories end with `/`. */
export const namesIn = async (
  { real, shown }: ConfinedPath,
  isHidden: (path: string) => boolean,
): Promise<readonly string[]> => {
  const entries = await readdir(real, { withFileTypes: true });
  return entries
    .filter(({ name }) => !isHidden(shown === '' ? name : `${shown}/${name}`))
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort();
};

/** Formats the list of a directory for a model. */
export const listingOf = ({ shown }: ConfinedPath, names: readonly string[]): string => {
  const directory = shown === '' ? 'The root directory' : `'${shown}' is a directory. It`;
  if (names.length === 0) return `${directory} contains nothing that can be read.`;
  const more = names.length > maxNames ? [`… and ${names.length - maxNames} more`] : [];
  return [`${directory} contains:`, ...names.slice(0, maxNames), ...more].join('\n');
};
