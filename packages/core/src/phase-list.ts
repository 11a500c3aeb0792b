import { listEditing } from './list-editing.js';
import type { PhaseFactory } from './phase.js';
import { acting } from './phases/acting.js';
import { checkInterrupt } from './phases/check-interrupt.js';
import { limit } from './phases/limit.js';
import { reasoning } from './phases/reasoning.js';
import { steering } from './phases/steering.js';
import { storeMemory } from './phases/store-memory.js';

/** One turn, as it is unless an agent says otherwise: what happens, in order. */
export const nativePhases: readonly PhaseFactory[] = Object.freeze([
  checkInterrupt,
  steering,
  reasoning,
  acting,
  checkInterrupt,
  storeMemory,
  limit,
]);

const edited = listEditing('phase', nativePhases);

/** Puts a phase before another: before its first place, where it has two. Default of the list: `nativePhases`. */
export const insertBefore = edited.insertBefore('insertBefore');

/** Puts a phase behind another: behind its first place, where it has two. Default of the list: `nativePhases`. */
export const insertAfter = edited.insertAfter('insertAfter');

/** Puts a phase into each place of another. Default of the list: `nativePhases`. */
export const replacePhase = edited.replace('replacePhase');

/** Leaves a phase out, wherever it is. What it guarantees goes with it. Default of the list: `nativePhases`. */
export const withoutPhase = edited.without('withoutPhase');
