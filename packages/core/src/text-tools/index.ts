export {
  actionDialect,
  type Dialect,
  type DialectOptions,
  type DialectPrompts,
  type DialectWriter,
  flatDialect,
  linesDialect,
  stepsDialect,
  type StepsOptions,
} from './dialects.js';
export { finalMarkers } from './final-markers.js';
export { textTools } from './text-tools.js';
