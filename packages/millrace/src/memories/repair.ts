import { strictness } from '../seams/repaired.js';
import type { Layer } from '../seams/layer.js';
import { trusted } from '../seams/through.js';
import { layerPlaces } from '../seams/layer-places.js';

/** Errors with `memory` if a tool call of the history has no result, instead of repairing it with a `warning`. */
export const strictHistory = (): Layer =>
  trusted({
    name: 'strictHistory',
    priority: layerPlaces.repair,
    call: (context) => (next) => (call) => {
      context.local(strictness).isStrict = true;
      return next(call);
    },
  });
