import type { CallOptions } from '../call-options.js';
import { lendAside } from '../places.js';
import { unspoken } from './step.js';

/** The options of steps that run side by side, none of which speaks: the ids of the calls of each do not depend on which is the quicker one. */
export const aside = (options: CallOptions, steps: number): readonly CallOptions[] => {
  const { parent, ...own } = unspoken(options);
  return parent === undefined
    ? Array.from({ length: steps }, () => own)
    : lendAside(parent, steps).map((way) => ({ ...own, parent: way }));
};
