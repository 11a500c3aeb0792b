import type { RecordRange } from 'millrace/journal';
import { statIfExists } from './file-system.js';
import type { Cursor } from './read-batches.js';
import { beginning } from './read-call.js';
import { segmentPath } from './segments.js';

/** Remembers how far each call was read, so that following a call does not read it from the start each time. */
export interface CursorCache {
  /** A cursor from which reading covers the whole range. */
  find(directory: string, range: RecordRange): Promise<Cursor>;
  remember(directory: string, cursor: Cursor): Promise<void>;
}

interface CachedCursors {
  readonly latest: Cursor;
  readonly previous: Cursor;
  readonly file: string;
}

/** Maximum number of remembered calls. The next one clears the cache. */
const maxCalls = 200;

export const createCursorCache = (): CursorCache => {
  const calls = new Map<string, CachedCursors>();
  return {
    find: async (directory, { after = 0, afterSeq = -1 }) => {
      const known = calls.get(directory);
      if (known === undefined) return beginning;
      const { latest, previous, file } = known;
      if (file !== (await fileOf(directory, latest))) {
        // The call was deleted, and may have been created again with other records.
        calls.delete(directory);
        return beginning;
      }
      const isBefore = ({ position, seq }: Cursor): boolean => position <= after || seq <= afterSeq;
      return [latest, previous].find(isBefore) ?? beginning;
    },
    remember: async (directory, cursor) => {
      const file = await fileOf(directory, cursor);
      if (file === undefined) return;
      const { latest = beginning, previous = beginning } = calls.get(directory) ?? {};
      const isFurther = latest.position < cursor.position;
      if (calls.size >= maxCalls) calls.clear();
      calls.set(directory, { latest: cursor, previous: isFurther ? latest : previous, file });
    },
  };
};

const fileOf = async (directory: string, { segment }: Cursor): Promise<string | undefined> => {
  const found = await statIfExists(segmentPath(directory, segment));
  return found && `${found.ino} ${found.birthtimeMs}`;
};
