import { listEditing } from '../list-editing.js';
import type { CallStage } from './call-stage.js';
import { completeCall } from './complete-call.js';
import { loadHistory } from './load-history.js';
import { prepareCall } from './prepare-call.js';
import { reviewReply } from './review-reply.js';
import { runLoop } from './run-loop.js';
import { saveHistory } from './save-history.js';
import { selectTools } from './select-tools.js';

/** What happens in a call, in order, unless an agent says otherwise. */
export const nativePipeline: readonly CallStage[] = Object.freeze([
  prepareCall,
  loadHistory,
  selectTools,
  runLoop,
  reviewReply,
  saveHistory,
  completeCall,
]);

const edited = listEditing('stage', nativePipeline);

/** Puts a stage before another: before its first place, where it has two. Default of the list: `nativePipeline`. */
export const insertStageBefore = edited.insertBefore('insertStageBefore');

/** Puts a stage behind another: behind its first place, where it has two. Default of the list: `nativePipeline`. */
export const insertStageAfter = edited.insertAfter('insertStageAfter');

/** Puts a stage into each place of another. Default of the list: `nativePipeline`. */
export const replaceStage = edited.replace('replaceStage');

/** Leaves a stage out, wherever it is. What it guarantees goes with it. Default of the list: `nativePipeline`. */
export const withoutStage = edited.without('withoutStage');
