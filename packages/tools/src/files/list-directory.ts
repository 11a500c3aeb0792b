import { readdir } from 'node:fs/promises';
import type { ConfinedPath } from './confined-path.js';

/** Names that are listed at most. */
const mostNames = 200;

/** Lists what is in a directory, the directories in it with a `/`, without what is hidden. Sorted by name. */
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

/** Writes the list of a directory for a model. */
export const listingOf = ({ shown }: ConfinedPath, names: readonly string[]): string => {
  const directory = shown === '' ? 'The root directory' : `'${shown}' is a directory. It`;
  if (names.length === 0) return `${directory} holds nothing that can be read.`;
  const more = names.length > mostNames ? [`… and ${names.length - mostNames} more`] : [];
  return [`${directory} holds:`, ...names.slice(0, mostNames), ...more].join('\n');
};
