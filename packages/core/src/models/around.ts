import type { Model } from '../model.js';

/** Makes a model that answers otherwise than the one it stands for, and is else like it. */
export const around = (
  { name, unsupported, keepsTime, toolsInPrompt }: Model,
  stream$: Model['stream$'],
  differences: Partial<Pick<Model, 'unsupported' | 'keepsTime' | 'toolsInPrompt'>> = {},
): Model => ({
  name,
  ...(unsupported === undefined ? {} : { unsupported }),
  ...(keepsTime === undefined ? {} : { keepsTime }),
  ...(toolsInPrompt === undefined ? {} : { toolsInPrompt }),
  ...differences,
  stream$,
});
