import { misuse } from './errors.js';
import { isRecord } from './json.js';

/** What an option may be: a test, and the words for it. */
export type Rule = readonly [accepts: (value: unknown) => boolean, what: string];

/** Refuses an option that does not exist, and names those that do: a misspelt one must not be passed over. Refuses one that cannot be what it is. An option that is `undefined` is as good as absent. */
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
      throw misuse(`${owner} has no option '${name}'. Its options are: ${known}.`);
    }
    const [accepts, what] = rule;
    if (value !== undefined && !accepts(value)) {
      throw misuse(`${owner}: '${name}' must be ${what}, not ${nameOf(value)}.`);
    }
  }
  const missing = required.find((name) => given[name] === undefined);
  if (missing !== undefined) {
    throw misuse(`${owner} needs '${missing}': ${rules[missing]?.[1] ?? 'it is missing'}.`);
  }
};

/** Options without those that are `undefined`: these are as good as absent. */
export const defined = <T extends object>(given: T | undefined): Partial<T> => {
  const entries = Object.entries(given ?? {}).filter(([, value]) => value !== undefined);
  // What is left of an object has its types, which its entries have lost.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  return Object.fromEntries(entries) as Partial<T>;
};

const nameOf = (value: unknown): string => {
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
export const isText: Rule = [(value) => typeof value === 'string', 'a text'];
export const isFlag: Rule = [(value) => typeof value === 'boolean', 'true or false'];
export const isFunction: Rule = [(value) => typeof value === 'function', 'a function'];
export const isObject: Rule = [isRecord, 'an object'];

/** A whole number of at least so much. */
export const wholeNumber = (least: number): Rule => [
  (value) => Number.isInteger(value) && Number(value) >= least,
  `a whole number of at least ${least}`,
];

/** A number of at least so much. */
export const numberFrom = (least: number): Rule => [
  (value) => Number.isFinite(value) && Number(value) >= least,
  `a number of at least ${least}`,
];

/** What a timer can wait for: a longer wait than 2^31-1 ms would fire at once. */
export const isDelay: Rule = [
  (value) => Number.isFinite(value) && Number(value) >= 0 && Number(value) < 2 ** 31,
  'a number of milliseconds from 0 to 2,147,483,647',
];

/** One of some words. */
export const oneOf = (...words: readonly (string | true)[]): Rule => [
  (value) => words.some((word) => word === value),
  words.map((word) => (word === true ? 'true' : `'${word}'`)).join(' or '),
];

/** Something that has this method. */
export const having = (method: string, what: string): Rule => [
  (value) => isRecord(value) && typeof value[method] === 'function',
  what,
];

export const isScheduler = having('schedule', 'a scheduler of RxJS');

export const isModel = having('stream$', "a model, such as openai('gpt-5-mini')");

/** A list, whatever is in it. */
export const listOf = (what: string): Rule => [
  (value) => Array.isArray(value),
  `a list of ${what}`,
];
