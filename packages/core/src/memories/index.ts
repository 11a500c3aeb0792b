// What makes long conversations fit: memories around memories, and a phase for long calls.
export { inputAndAnswer, windowMemory, type WindowMemoryOptions } from './window-memory.js';
export { summarise, type SummariseOptions } from './summarise.js';
export { summarisingMemory, type SummarisingMemoryOptions } from './summarising-memory.js';
