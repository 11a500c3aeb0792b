// Dialects: tools described in the prompt, and text parsed into tool calls.
export type { Dialect } from './dialects.js';
export { actionDialect, flatDialect, linesDialect, stepsDialect } from './dialects.js';
export { textTools } from './text-tools.js';
