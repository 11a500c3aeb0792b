export type { Dialect } from './dialects.js';
export { actionDialect, flatDialect, linesDialect, stepsDialect } from './dialects.js';
export { finalMarkers } from './final-markers.js';
export { textTools } from './text-tools.js';
