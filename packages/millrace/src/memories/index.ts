// Memories that shorten long conversations, and a phase for long calls.
export { inputAndAnswer, windowMemory, wrapMemory } from './window-memory.js';
export { summarise } from './summarise.js';
export { summarisingMemory } from './summarising-memory.js';
