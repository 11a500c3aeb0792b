export type {
  Dialect,
  DialectOptions,
  DialectPrompts,
  DialectWriter,
  LabelTranslations,
  PromptNeeds,
  PromptPart,
  WrittenResult,
  WrittenUse,
} from './dialect.js';
export { actionDialect } from './dialects/action.js';
export { flatDialect } from './dialects/flat.js';
export { linesDialect } from './dialects/lines.js';
export { stepsDialect, type StepsOptions } from './dialects/steps.js';
export { finalMarkers } from './final-markers.js';
export type { Label } from './peek.js';
export { textTools } from './text-tools.js';
