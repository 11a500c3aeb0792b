// The call: what a layer of `call` gets, and how it edits or answers it.
export type { Answer } from '../seams/layer.js';
export {
  addNote,
  type Call,
  charge,
  hideTools,
  type LoopCall,
  questionOf,
  recall,
  recallBeforeInput,
} from '../seams/call.js';
export { answerWith } from './answer-with.js';

// The layers around it: their places, the one that interrupts bring, and the calls above.
export { layerPlaces } from '../seams/layer-places.js';
export { interruptLayer } from '../seams/steps.js';
export { lineageOf } from '../seams/call-scope.js';
export { isResumed } from '../seams/through.js';
