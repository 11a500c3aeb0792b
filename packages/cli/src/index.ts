export {
  type ChosenModel,
  type ModelChoice,
  modelChoices,
  type ModelSetting,
} from './choose-model.js';
export type { UsageUnit } from './presentation/describe-reply.js';
export type { Environment } from './environment.js';
export { main } from './main.js';
export { marblePicture } from './marbles/marble-picture.js';
export { present, type PresentOptions } from './presentation/present.js';
export { createTheme, type Theme } from './presentation/theme.js';
