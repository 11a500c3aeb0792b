import { listEditing } from './list-editing.js';
import type { Layer } from './layer.js';
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

/** A layer that edits the phases of a turn. */
export type PhaseEdit = Layer & Required<Pick<Layer, 'turn'>>;

/** Puts a phase before another: before its first place, if it has two. */
export const insertBefore = (place: PhaseFactory, added: PhaseFactory): PhaseEdit => ({
  name: 'insertBefore',
  turn: (phases) => edited.insertBefore('insertBefore')(place, added, phases),
});

/** Puts a phase after another: after its first place, if it has two. */
export const insertAfter = (place: PhaseFactory, added: PhaseFactory): PhaseEdit => ({
  name: 'insertAfter',
  turn: (phases) => edited.insertAfter('insertAfter')(place, added, phases),
});

/** Puts a phase into each place of another. */
export const replacePhase = (former: PhaseFactory, added: PhaseFactory): PhaseEdit => ({
  name: 'replacePhase',
  turn: (phases) => edited.replace('replacePhase')(former, added, phases),
});

/** Leaves a phase out, wherever it is. What it guarantees goes with it. */
export const withoutPhase = (dropped: PhaseFactory): PhaseEdit => ({
  name: 'withoutPhase',
  turn: (phases) => edited.without('withoutPhase')(dropped, phases),
});
