import { lastValueFrom } from 'rxjs';
import type { Store } from './store.js';

/** Closes a store. */
export const closeStore = (store: Pick<Store, 'close$'>): Promise<unknown> =>
  lastValueFrom(store.close$(), { defaultValue: undefined });
