export type { Dialect, DialectOptions, DialectPrompts, DialectWriter } from './dialect.js';
export { actionDialect } from './dialects/action.js';
export { flatDialect } from './dialects/flat.js';
export { linesDialect } from './dialects/lines.js';
export { stepsDialect, type StepsOptions } from './dialects/steps.js';
export { finalMarkers } from './final-markers.js';
export { textTools } from './text-tools.js';
