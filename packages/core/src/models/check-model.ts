import { misuse } from '../errors.js';
import { isModel } from '../options.js';

/** Refuses what is no model, and says what to pass. */
export const checkModel = (owner: string, model: unknown): void => {
  const [accepts, what] = isModel;
  if (accepts(model)) return;
  const list = Array.isArray(model) ? ' Pass several as arguments, not as a list.' : '';
  throw misuse(`${owner} takes ${what}.${list}`);
};
