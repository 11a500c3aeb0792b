// What a phase of one's own is made of, and where it is put. Agents need none of it.
export { acting } from './acting.js';
export { checkInterrupt, limit, storeMemory } from './limit.js';
export { reasoning } from './reasoning.js';
export {
  insertAfter,
  insertBefore,
  nativePhases,
  type PhaseEdit,
  replacePhase,
  withoutPhase,
} from '../phase-list.js';
export { alsoEnded, type Phase, phase, type PhaseFactory } from '../phase.js';
export { consult$, type Consultation, type Consulted, instruction } from '../consult.js';
export type { Context } from '../context.js';
export type { Hooks } from '../hooks.js';
export type { Interrupt, Interruption } from '../interruption.js';
export type { Limits } from '../limits.js';
export {
  addEphemeral,
  append,
  compact,
  correct,
  type Correction,
  end,
  type EndedRun,
  hasEnded,
  note,
  type Notes,
  type OpenRun,
  type Run,
  type RunKey,
  runKey,
  spend,
  unanswered,
} from '../run.js';
export type { Toolkit } from '../toolkit.js';
