import type { Kept } from './unsent.js';

const key = 'millrace.model';

/** The model that the tab asks, which it keeps over reloads: otherwise, an answer would continue with another one. */
export const chosenModelIn = (storage: Kept, models: readonly string[]) => ({
  read: (): string | undefined => models.find((name) => name === storage.getItem(key)) ?? models[0],
  write: (model: string): void => {
    try {
      storage.setItem(key, model);
    } catch {
      // It lasts as long as the page is shown.
    }
  },
});
