import { stat } from 'node:fs/promises';
import type { RecordRange } from '@millrace/core/journal';
import { whenGone } from './failure.js';
import type { Place } from './read-batches.js';
import { beginning } from './read-call.js';
import { segmentPath } from './segments.js';

/** Remembers how far calls were read, so that who follows one does not read it from its beginning each time. */
export interface KnownPlaces {
  /** A place behind which all is that a range names. */
  find(directory: string, range: RecordRange): Promise<Place>;
  remember(directory: string, place: Place): Promise<void>;
}

/** Calls of which the place is remembered: those that were read last. */
const most = 200;

/** Makes what remembers nothing yet. */
export const createKnownPlaces = (): KnownPlaces => {
  const places = new Map<string, { readonly place: Place; readonly file: string }>();
  return {
    find: async (directory, { after = 0, afterSeq = -1 }) => {
      const known = places.get(directory);
      if (known === undefined) return beginning;
      const { place, file } = known;
      // A call that was deleted may be there again, with other records.
      if (file !== (await fileOf(directory, place))) return beginning;
      return place.position <= after || place.seq <= afterSeq ? place : beginning;
    },
    remember: async (directory, place) => {
      const file = await fileOf(directory, place);
      if (file === undefined) return;
      places.delete(directory);
      places.set(directory, { place, file });
      const [oldest = ''] = places.keys();
      if (places.size > most) places.delete(oldest);
    },
  };
};

const fileOf = async (directory: string, { segment }: Place): Promise<string | undefined> => {
  const found = await whenGone(stat(segmentPath(directory, segment)), undefined);
  return found && `${found.ino} ${found.birthtimeMs}`;
};
