import { strictness } from '../seams/repaired.js';
import type { Layer } from '../seams/layer.js';
import { trusted } from '../seams/through.js';
import { places } from '../seams/places.js';

/** Errors with `memory` if a tool call of the history has no result, instead of repairing it with a `warning`. */
export const strictHistory = (): Layer =>
  trusted({
    name: 'strictHistory',
    priority: places.repair,
    call: (context) => (next) => (call) => {
      context.local(strictness).isStrict = true;
      return next(call);
    },
  });
