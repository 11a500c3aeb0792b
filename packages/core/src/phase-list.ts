import { misuse } from './errors.js';
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

/** Puts a phase before another: before its first place, where it has two. Default of the list: `nativePhases`. */
export const insertBefore = (
  place: PhaseFactory,
  added: PhaseFactory,
  phases: readonly PhaseFactory[] = nativePhases,
): readonly PhaseFactory[] => phases.toSpliced(placeOf(place, phases, 'insertBefore'), 0, added);

/** Puts a phase behind another: behind its first place, where it has two. Default of the list: `nativePhases`. */
export const insertAfter = (
  place: PhaseFactory,
  added: PhaseFactory,
  phases: readonly PhaseFactory[] = nativePhases,
): readonly PhaseFactory[] => phases.toSpliced(placeOf(place, phases, 'insertAfter') + 1, 0, added);

/** Puts a phase into each place of another. Default of the list: `nativePhases`. */
export const replacePhase = (
  former: PhaseFactory,
  added: PhaseFactory,
  phases: readonly PhaseFactory[] = nativePhases,
): readonly PhaseFactory[] => {
  placeOf(former, phases, 'replacePhase');
  return phases.map((each) => (each === former ? added : each));
};

/** Leaves a phase out, wherever it is. What it guarantees goes with it. Default of the list: `nativePhases`. */
export const withoutPhase = (
  dropped: PhaseFactory,
  phases: readonly PhaseFactory[] = nativePhases,
): readonly PhaseFactory[] => {
  placeOf(dropped, phases, 'withoutPhase');
  return phases.filter((each) => each !== dropped);
};

const placeOf = (place: PhaseFactory, phases: readonly PhaseFactory[], owner: string): number => {
  const index = phases.indexOf(place);
  if (index !== -1) return index;
  throw misuse(
    `${owner}(): the list has no such phase. It has: ${phases.map(({ name }) => name || 'one without a name').join(', ')}.`,
  );
};
