import type { CallStage } from './call-stage.js';

const loops = new WeakSet<CallStage>();

/** Says of a stage that it stands in the place of the loop: an interrupt passes over what hangs before it. */
export const inPlaceOfLoop = (stage: CallStage): CallStage => {
  loops.add(stage);
  return stage;
};

/** Tells whether a stage stands in the place of the loop. */
export const isInPlaceOfLoop = (stage: CallStage): boolean => loops.has(stage);
