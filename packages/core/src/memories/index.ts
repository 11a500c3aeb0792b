// What makes long conversations fit: memories around memories.
export { inputAndAnswer } from './input-and-answer.js';
export { windowMemory, type WindowMemoryOptions } from './window-memory.js';
