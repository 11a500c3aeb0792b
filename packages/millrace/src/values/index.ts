// Checks of options and of JSON, for code that takes either from outside, and words of text, for code that compares it.
export { exactJson, toExactJson, toolInput } from './exact-json.js';
export {
  canonicalJson,
  defined,
  fnv1a,
  isRecord,
  isSameJson,
  isTooDeep,
  parsedJson,
} from './json.js';
export {
  appendedTo,
  chained,
  checkTree,
  emptyTree,
  leafBelow,
  lineOf,
  movedTo,
  pathTo,
  siblingsOf,
  unknownPlace,
  withoutBelow,
} from './message-tree.js';
export { describeCost } from './describe-cost.js';
export { meantName } from './meant-name.js';
export { checkFormat } from './stored-format.js';
export { messageOf } from './errors.js';
export {
  checkOptions,
  type Complete,
  having,
  isDelay,
  isFlag,
  isFunction,
  isObject,
  isText,
  longestDelayMs,
  numberFrom,
  oneOf,
  type Rule,
  wholeNumber,
} from './options.js';
export { isSameInput } from './message.js';
export { eventPart, unwritable } from './plain-json.js';
export { isMessage } from './shape.js';
export {
  databaseBeside,
  isStoreDatabase,
  storeApplicationId,
  storeDatabaseBytes,
  storeMarker,
} from './store-marker.js';
export { type JsonReading, readJson, type Repair } from './read-json.js';
export { withoutSecrets } from './secret-forms.js';
export { untrustedText } from './untrusted-text.js';
export { endsOf, lookUpForm, nearMatches, termsIn, termsOfRequest, wordsIn } from './words.js';
export { watchStream } from './watch-stream.js';
