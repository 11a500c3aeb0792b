import { misuse } from '../errors.js';
import type { Model, ModelTimeouts } from '../model.js';
import { checkOptions, defined, isDelay } from '../options.js';
import { around } from './around.js';
import { checkModel } from './check-model.js';
import { inTime } from './in-time.js';

/**
 * Gives a model up when it is silent for too long: its stream errors with `timeout`, which is retryable, and
 * its request is aborted. Content counts, bytes do not: a heartbeat keeps nothing alive. The clocks stand still while
 * demand is closed. Around `retry` they hold for each attempt. What a call says goes first, then the
 * outermost wrapper.
 */
export const timeouts = (model: Model, limits: ModelTimeouts): Model => {
  checkModel('timeouts()', model);
  checkOptions('timeouts()', limits, { firstChunkMs: isDelay, chunkMs: isDelay });
  const own = defined(limits);
  if (Object.keys(own).length === 0) {
    throw misuse('timeouts() needs firstChunkMs, chunkMs or both.');
  }
  const timed = inTime(model);
  return around(timed, (request, context) =>
    timed.stream$(request, { ...context, timeouts: { ...own, ...defined(context.timeouts) } }),
  );
};
