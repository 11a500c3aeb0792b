export type { Dialect, DialectOptions, DialectPrompts, DialectWriter } from './dialect.js';
export {
  actionDialect,
  flatDialect,
  linesDialect,
  stepsDialect,
  type StepsOptions,
} from './dialects.js';
export { finalMarkers } from './final-markers.js';
export { textTools } from './text-tools.js';
