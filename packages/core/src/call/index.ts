// What a layer around calls of one's own is made of. Most agents need none of it.
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
export type { Holds, Interruption } from '../flow/interruption.js';
