// What makes long conversations fit: memories around memories.
export { inputAndAnswer } from './input-and-answer.js';
export { summarisingMemory, type SummarisingMemoryOptions } from './summarising-memory.js';
export { windowMemory, type WindowMemoryOptions } from './window-memory.js';
