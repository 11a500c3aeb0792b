import { existsSync } from 'node:fs';
import type { StorePlace } from './store-place.js';

/** Says behind the name of a place that its directory is not there; nothing, where it is. */
export const absence = (place: StorePlace): string =>
  place.type === 'files' && !existsSync(place.directory) ? ', which is not there' : '';
