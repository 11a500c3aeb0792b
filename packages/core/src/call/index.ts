// Building blocks for custom layers around calls.
export { answerWith } from './answer.js';
export {
  addNote,
  type Call,
  charge,
  hideTools,
  isOpen,
  questionOf,
  recall,
  recallBeforeInput,
  withHistory,
  withQuestion,
} from '../seams/call.js';
export type { Answer } from '../seams/layer.js';
export type { Hooks } from '../seams/hooks.js';
export type { Holds } from '../flow/interruption.js';
