import type { RecordRange } from '@millrace/core/journal';
import { statIn } from './failure.js';
import type { Place } from './read-batches.js';
import { beginning } from './read-call.js';
import { segmentPath } from './segments.js';

/** Remembers how far calls were read, so that who follows one does not read it from its beginning each time. */
export interface KnownPlaces {
  /** A place behind which all is that a range names. */
  find(directory: string, range: RecordRange): Promise<Place>;
  remember(directory: string, place: Place): Promise<void>;
}

interface Known {
  readonly latest: Place;
  readonly previous: Place;
  readonly file: string;
}

/** Calls of which places are remembered. With one more, all are forgotten, and found again. */
const most = 200;

/** Makes what remembers nothing yet. */
export const createKnownPlaces = (): KnownPlaces => {
  const places = new Map<string, Known>();
  return {
    find: async (directory, { after = 0, afterSeq = -1 }) => {
      const known = places.get(directory);
      if (known === undefined) return beginning;
      const { latest, previous, file } = known;
      if (file !== (await fileOf(directory, latest))) {
        // The call was deleted, and may be there again with other records.
        places.delete(directory);
        return beginning;
      }
      const isBefore = ({ position, seq }: Place): boolean => position <= after || seq <= afterSeq;
      return [latest, previous].find(isBefore) ?? beginning;
    },
    remember: async (directory, place) => {
      const file = await fileOf(directory, place);
      if (file === undefined) return;
      const { latest = beginning, previous = beginning } = places.get(directory) ?? {};
      const isFurther = latest.position < place.position;
      if (places.size >= most) places.clear();
      places.set(directory, { latest: place, previous: isFurther ? latest : previous, file });
    },
  };
};

const fileOf = async (directory: string, { segment }: Place): Promise<string | undefined> => {
  const found = await statIn(segmentPath(directory, segment));
  return found && `${found.ino} ${found.birthtimeMs}`;
};
