// Checks of options and of JSON, for code that takes either from outside.
export { isRecord, parsedJson } from './json.js';
export {
  checkOptions,
  defined,
  having,
  isDelay,
  isFlag,
  isFunction,
  isObject,
  isText,
  numberFrom,
  oneOf,
  type Rule,
  wholeNumber,
} from './options.js';
