// Building blocks for custom layers around calls.
export { answerWith } from './answer.js';
export {
  addNote,
  type Call,
  type LoopCall,
  charge,
  hideTools,
  questionOf,
  recall,
  recallBeforeInput,
} from '../seams/call.js';
export { interruptLayer } from '../seams/steps.js';
export { layerPlaces } from '../seams/layer-places.js';
export { isResumed } from '../seams/through.js';
export { lineageOf } from '../seams/call-scope.js';
export type { Answer } from '../seams/layer.js';
