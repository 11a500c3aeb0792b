import { posix } from 'node:path';
import { nearMatches } from 'millrace/values';
import { confinePath, type Confinement, namesIn } from './confined-path.js';

/** Replaces an error of the file system by one that a model can act on; returns any other error unchanged. */
export const explainFailure = async (
  error: unknown,
  path: string,
  confinement: Confinement,
  doing: 'read' | 'written' = 'read',
): Promise<unknown> => {
  const code = codeOf(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    const near = await namesNear(path, confinement);
    return new Error(`There is no '${path}'.${near}`, { cause: error });
  }
  return code === undefined ? error : new Error(`'${path}' cannot be ${doing}.`, { cause: error });
};

/** The code of an error of the file system, whose message must not be shown because it contains absolute paths. */
const codeOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && 'syscall' in error && 'code' in error
    ? error.code
    : undefined;

/** Suggests existing names. Directories outside the root are never read. */
const namesNear = async (path: string, confinement: Confinement): Promise<string> => {
  try {
    const place = await confinePath(posix.dirname(path), confinement);
    const names = await namesIn(place, confinement.isHidden);
    const near = nearMatches(posix.basename(path), names);
    const listed = near.length > 0 ? near : names.slice(0, 10);
    const where = place.shown === '' ? '' : `${place.shown}/`;
    const shown = listed.map((name) => `'${where}${name}'`).join(', ');
    if (shown === '') return '';
    return near.length > 0
      ? ` Did you mean ${shown}?`
      : ` The directory contains, among others: ${shown}.`;
  } catch {
    return '';
  }
};
