import type { Kept } from './unsent.js';

/**
 * The model that a tab asks on a page, which it keeps over reloads: otherwise, an answer would continue with another one. Other
 * pages of the site, with other agents, have their own.
 */
export const chosenModelIn = (storage: Kept, page: string, models: readonly string[]) => {
  const key = `millrace.model ${page}`;
  return {
    read: (): string | undefined =>
      models.find((name) => name === storage.getItem(key)) ?? models[0],
    write: (model: string): void => {
      try {
        storage.setItem(key, model);
      } catch {
        // It lasts as long as the page is shown.
      }
    },
  };
};
