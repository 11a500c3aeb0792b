import type { Model } from '../model.js';

/** Makes a model that answers otherwise than the one it stands for, and is else like it. */
export const around = (
  { name, unsupported, keepsTime }: Model,
  stream$: Model['stream$'],
  differences: Partial<Pick<Model, 'unsupported' | 'keepsTime'>> = {},
): Model => ({
  name,
  ...(unsupported === undefined ? {} : { unsupported }),
  ...(keepsTime === undefined ? {} : { keepsTime }),
  ...differences,
  stream$,
});
