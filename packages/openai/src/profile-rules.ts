import {
  checkOptions,
  isFlag,
  isFunction,
  isObject,
  isRecord,
  isText,
  oneOf,
  type Rule,
} from 'millrace/values';
import type { Profile, ToolIdRule, UnsupportedOptions } from './profile.js';

/**
 * Validates a profile. Throws a `MillraceError` (`config`) that names unknown (perhaps misspelled) and invalid fields.
 */
export const checkProfile = (profile: Profile): void => {
  checkOptions('endpoint()', profile, profileRules, ['name']);
  for (const models of profile.unsupported ?? []) {
    checkOptions(`endpoint(): an entry of 'unsupported'`, models, unsupportedRules, ['options']);
  }
  if (profile.toolIds !== undefined) {
    checkOptions(`endpoint(): 'toolIds'`, profile.toolIds, toolIdRules, ['accepts', 'rename']);
  }
};

const isName: Rule = [
  (value) => typeof value === 'string' && value.trim() !== '',
  "the name of the vendor, such as 'Mine'",
];

const isPattern: Rule = [
  (value) => value instanceof RegExp && !value.global && !value.sticky,
  'a RegExp without the flags g and y',
];

const isMedia: Rule = [
  (value) =>
    Array.isArray(value) && value.every((it) => /^(?:image|audio|file)$/u.test(String(it))),
  "a list of 'image', 'audio' and 'file'",
];

const isRecords: Rule = [
  (value) => Array.isArray(value) && value.every(isRecord),
  "a list of objects, such as [{ options: ['temperature'] }]",
];

const profileRules: Readonly<Record<keyof Profile, Rule>> = {
  name: isName,
  baseURL: isText,
  baseURLVariable: isText,
  keyVariable: isText,
  keyHeader: isText,
  takesTokens: isFlag,
  keyless: isFlag,
  isOpenAI: isFlag,
  body: isObject,
  unsupported: isRecords,
  nativeOutput: oneOf('always', 'withoutTools', 'never'),
  strictTools: isFlag,
  media: isMedia,
  encryptsReasoning: isPattern,
  systemRole: oneOf('system', 'developer'),
  maxTokensField: oneOf('max_tokens', 'max_completion_tokens'),
  asksForUsage: isFlag,
  takesNames: isFlag,
  takesToolMedia: isFlag,
  thinkingField: isText,
  takesAnnotations: isFlag,
  sendsWholeCalls: isFlag,
  finishesWithDone: isFlag,
  takesNoContent: isFlag,
  takesNamedChoice: isFlag,
  unsignedCall: isObject,
  toolIds: isObject,
  assistantTextAfterTools: isText,
  continuation: isObject,
};

const unsupportedRules: Readonly<Record<keyof UnsupportedOptions, Rule>> = {
  options: [Array.isArray, 'a list of request options'],
  models: isPattern,
  whileReasoning: isFlag,
};

const toolIdRules: Readonly<Record<keyof ToolIdRule, Rule>> = {
  accepts: isPattern,
  rename: isFunction,
};
