export { acting } from './acting.js';
export { checkInterrupt, limit, storeMemory } from './limit.js';
export { reasoning } from './reasoning.js';
export type { PhaseEdit } from './phase-list.js';
export { insertAfter, insertBefore, replacePhase, withoutPhase } from './phase-list.js';
export { alsoEnded, type Phase, phase, type PhaseFactory } from '../seams/phase.js';
export type { Context } from '../seams/context.js';
export { consult$, type Consulted, instruction } from './consult.js';
export type { Hooks } from '../seams/hooks.js';
export type { Interrupt, Interruption } from '../flow/interruption.js';
export type { Limits } from '../flow/deadline.js';
export {
  addEphemeral,
  append,
  correct,
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
export type { Toolkit } from '../tools/toolkit.js';
