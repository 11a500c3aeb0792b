// The default turn: `checkInterrupt`, `reasoning`, `acting`, `checkInterrupt`, `storeMemory`, `limit`.
export { acting } from './acting.js';
export { checkInterrupt, limit, storeMemory } from './limit.js';
export { reasoning } from './reasoning.js';

// Edits of the turn: layers that insert, replace or remove a phase.
export {
  insertAfter,
  insertBefore,
  type PhaseEdit,
  replacePhase,
  withoutPhase,
} from './phase-list.js';

// Phases of your own: an operator on the run, and the transitions that it may return.
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
export type { Context, Phase, PhaseFactory } from '../seams/layer.js';
export { phase } from '../seams/phase.js';

// Requests and tool calls within a phase: what an own phase needs to ask a model or run a tool.
export { toolContext } from '../seams/tool-context.js';
export { toolCallIds } from './ask.js';
export { isDecidedOn } from './authorize-tool-call.js';
export { consult$, type Consulted, instruction } from './consult.js';
