// Building blocks for custom layers around calls.
export { answerWith } from './answer.js';
export {
  addNote,
  type Call,
  charge,
  hideTools,
  questionOf,
  recall,
  recallBeforeInput,
} from '../seams/call.js';
export type { Answer } from '../seams/layer.js';
