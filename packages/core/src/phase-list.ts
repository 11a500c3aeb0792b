import { misuse } from './errors.js';
import type { Layer } from './layer.js';
import type { PhaseFactory } from './phase.js';
import { acting } from './phases/acting.js';
import { checkInterrupt } from './phases/check-interrupt.js';
import { limit } from './phases/limit.js';
import { reasoning } from './phases/reasoning.js';
import { storeMemory } from './phases/store-memory.js';

/** One turn, as it is unless an agent says otherwise: what happens, in order. */
export const nativePhases: readonly PhaseFactory[] = Object.freeze([
  checkInterrupt,
  reasoning,
  acting,
  checkInterrupt,
  storeMemory,
  limit,
]);

/** A layer that edits the phases of a turn. */
export type PhaseEdit = Layer & Required<Pick<Layer, 'turn'>>;

/** Puts a phase before another: before its first place, if it has two. */
export const insertBefore = (place: PhaseFactory, added: PhaseFactory): PhaseEdit =>
  edit('insertBefore', place, (phases, at) => phases.toSpliced(at, 0, added));

/** Puts a phase after another: after its first place, if it has two. */
export const insertAfter = (place: PhaseFactory, added: PhaseFactory): PhaseEdit =>
  edit('insertAfter', place, (phases, at) => phases.toSpliced(at + 1, 0, added));

/** Puts a phase into each place of another. */
export const replacePhase = (former: PhaseFactory, added: PhaseFactory): PhaseEdit =>
  edit('replacePhase', former, (phases) => phases.map((it) => (it === former ? added : it)));

/** Leaves a phase out, wherever it is. What it guarantees goes with it. */
export const withoutPhase = (dropped: PhaseFactory): PhaseEdit =>
  edit('withoutPhase', dropped, (phases) => phases.filter((it) => it !== dropped));

const edit = (
  name: string,
  place: PhaseFactory,
  change: (phases: readonly PhaseFactory[], at: number) => readonly PhaseFactory[],
): PhaseEdit => ({
  name,
  turn: (phases) => {
    const at = phases.indexOf(place);
    if (at !== -1) return change(phases, at);
    const names = phases.map((phase) => phase.name || 'one without a name').join(', ');
    throw misuse(`${name}(): the list has no such phase. It has: ${names}.`);
  },
});
