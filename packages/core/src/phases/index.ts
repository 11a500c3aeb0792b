export { acting } from './acting.js';
export { toolCallIds } from './ask.js';
export { isDecidedOn } from './authorize-tool-call.js';
export { checkInterrupt, limit, storeMemory } from './limit.js';
export { reasoning } from './reasoning.js';
export {
  insertAfter,
  insertBefore,
  type PhaseEdit,
  replacePhase,
  withoutPhase,
} from './phase-list.js';
export { phase } from '../seams/phase.js';
export type { Context, Phase, PhaseFactory } from '../seams/layer.js';
export { toolContext } from '../seams/tool-context.js';
export { consult$, type Consulted, instruction } from './consult.js';
export {
  addEphemeral,
  append,
  correct,
  end,
  type EndedRun,
  note,
  type OpenRun,
  type Run,
  type RunKey,
  runKey,
  spend,
  unanswered,
} from '../run.js';
