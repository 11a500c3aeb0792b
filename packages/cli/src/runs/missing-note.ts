import { existsSync } from 'node:fs';
import type { StorePlace } from './store-place.js';

/** A note to append to a place if its directory does not exist, else an empty string. */
export const missingNote = (place: StorePlace): string =>
  place.type === 'files' && !existsSync(place.directory) ? ', which does not exist' : '';
