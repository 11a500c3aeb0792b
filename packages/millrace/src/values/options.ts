import { misuse } from './errors.js';
import { isRecord } from './json.js';

/** The allowed values of an option: a test, and a description for the error message. */
export type Rule = readonly [accepts: (value: unknown) => boolean, what: string];

/** Rejects unknown options, naming the known ones, and invalid values. `undefined` counts as not set. */
export const checkOptions = (
  owner: string,
  given: unknown,
  rules: Readonly<Record<string, Rule>>,
  required: readonly string[] = [],
): void => {
  const known = Object.keys(rules).join(', ');
  if (!isRecord(given)) throw misuse(`${owner} takes an object of options: ${known}.`);
  for (const [name, value] of Object.entries(given)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (rule === undefined) {
      const plain = name.toLowerCase().replaceAll('_', '');
      const meant = Object.keys(rules).find(
        (it) => it === others.get(plain) || isNear(it.toLowerCase(), plain),
      );
      const hint = meant === undefined ? '' : `Did you mean '${meant}'? `;
      throw misuse(`${owner} has no option '${name}'. ${hint}Its options are: ${known}.`);
    }
    const [accepts, what] = rule;
    if (value !== undefined && !accepts(value)) {
      throw misuse(`${owner}: '${name}' must be ${what}, not ${kindOf(value)}.`);
    }
  }
  const missing = required.find((name) => given[name] === undefined);
  if (missing !== undefined) {
    throw misuse(`${owner} needs '${missing}': ${rules[missing]?.[1] ?? 'it is missing'}.`);
  }
};

/** Other libraries' names of options. */
const others = new Map([
  ...['system', 'prompt'].map((name) => [name, 'instructions'] as const),
  ...['parameters', 'inputschema'].map((name) => [name, 'input'] as const),
  ...['execute', 'handler'].map((name) => [name, 'run'] as const),
  ['middleware', 'use'],
]);

/** Whether two names differ in up to two letters. */
const isNear = (a: string, b: string, left = Math.min(2, b.length - 3)): boolean => {
  const at = Array.from(a).findIndex((letter, index) => letter !== b[index]);
  if (at === -1) return b.length - a.length <= left;
  if (left <= 0) return false;
  const [shortA, shortB] = [a.slice(at + 1), b.slice(at + 1)];
  const [restA, restB] = [a.slice(at), b.slice(at)];
  return [
    [shortA, restB],
    [restA, shortB],
    [shortA, shortB],
  ].some(([one = '', other = '']) => isNear(one, other, left - 1));
};

/** Options with their defaults filled in: none is missing or `undefined`. */
export type Complete<T> = { readonly [Key in keyof T]-?: Exclude<T[Key], undefined> };

const kindOf = (value: unknown): string => {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'object':
      return value === null ? 'null' : 'this object';
    case 'function':
      return 'this function';
    default:
      return String(value);
  }
};

export const isNumber: Rule = [Number.isFinite, 'a number'];
export const isText: Rule = [(value) => typeof value === 'string', 'a string'];
export const isFlag: Rule = [(value) => typeof value === 'boolean', 'true or false'];
export const isFunction: Rule = [(value) => typeof value === 'function', 'a function'];
export const isObject: Rule = [isRecord, 'an object'];

export const wholeNumber = (least: number): Rule => [
  (value) => Number.isInteger(value) && Number(value) >= least,
  `a whole number of at least ${least}`,
];

export const numberFrom = (least: number): Rule => [
  (value) => Number.isFinite(value) && Number(value) >= least,
  `a number of at least ${least}`,
];

/** The longest delay of a timer, in milliseconds. Timers fire immediately for a longer one. */
export const longestDelayMs = 2 ** 31 - 1;

/** A delay that timers support. */
export const isDelay: Rule = [
  (value) => Number.isFinite(value) && Number(value) >= 0 && Number(value) <= longestDelayMs,
  'a number of milliseconds from 0 to 2,147,483,647',
];

export const oneOf = (...words: readonly (string | true)[]): Rule => [
  (value) => words.some((word) => word === value),
  words.map((word) => (word === true ? 'true' : `'${word}'`)).join(' or '),
];

export const having = (method: string, what: string): Rule => [
  (value) => isRecord(value) && typeof value[method] === 'function',
  what,
];

export const isScheduler = having('schedule', 'a scheduler of RxJS');

export const isModel = having(
  'stream$',
  "a model, such as openai('gpt-5-mini'), or aiSdkModel(model) of '@millrace/ai-sdk' for a model of the AI SDK",
);

export const listOf = (what: string): Rule => [
  (value) => Array.isArray(value),
  `a list of ${what}`,
];
