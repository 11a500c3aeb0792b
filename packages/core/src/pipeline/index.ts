// What a stage of one's own is made of, and where it is put. Most agents need none of it.
export type { CallContext, CallStage } from './call-stage.js';
export {
  addSources,
  answerWith,
  type CallState,
  charge,
  type ContextPlacement,
  hideTools,
  isOpen,
  recall,
  recallBeforeInput,
  withHistory,
  withQuestion,
} from './call-state.js';
export { completeCall } from './complete-call.js';
export { limitCalls } from './limit-calls.js';
export { loadHistory } from './load-history.js';
export {
  insertStageAfter,
  insertStageBefore,
  nativePipeline,
  replaceStage,
  withoutStage,
} from './native-pipeline.js';
export { prepareCall } from './prepare-call.js';
export { retrieve, type RetrieveOptions } from './retrieve.js';
export { reviewReply } from './review-reply.js';
export { runLoop } from './run-loop.js';
export { saveHistory } from './save-history.js';
export { selectTools } from './select-tools.js';
export type { CallPlan } from '../call-plan.js';
export type { CallScope } from '../call-scope.js';
export type { Hooks } from '../hooks.js';
export type { Interruption } from '../interruption.js';
export type { EndedRun } from '../run.js';
