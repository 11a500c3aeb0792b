import type { JsonSchema } from 'millrace';
import { isRecord } from 'millrace/values';
import { isExpression } from './arithmetic.js';
import { stemsIn } from './phrase.js';

/** The text that can fill a parameter, the most specific kinds first. An `opaque` parameter is never filled. */
export const kinds = [
  ...(['arithmetic', 'url', 'email', 'date', 'code', 'path', 'choice', 'number', 'flag'] as const),
  ...(['name', 'prose', 'query', 'opaque'] as const),
];

export type Scalar = string | number | boolean;

/** A parameter of a tool, read from its schema. */
export interface Parameter {
  readonly name: string;
  readonly kind: (typeof kinds)[number];
  readonly required: boolean;
  readonly description: string;
  readonly examples: readonly string[];
  /** The values that the schema allows, if it lists them. */
  readonly choices: readonly Scalar[];
  readonly fallback: unknown;
  /** If it takes a list, the shortest and the longest one. */
  readonly list: readonly [least: number, most: number] | undefined;
  /** Whether the schema allows this value, or this item of a list. */
  readonly accepts: (value: Scalar) => boolean;
}

export const readParameters = (schema: JsonSchema): readonly Parameter[] => {
  const required = new Set(listIn(schema, 'required').filter((it) => typeof it === 'string'));
  const properties = new Map(Object.entries(recordOf(schema['properties'])));
  return [...new Set([...properties.keys(), ...required])]
    .slice(0, 50)
    .map((name) => readParameter(name, recordOf(properties.get(name)), required.has(name)));
};

const readParameter = (name: string, given: JsonSchema, required: boolean): Parameter => {
  const outer = firstAlternative(given);
  const isList = typeOf(outer) === 'array';
  const rules = isList ? firstAlternative(recordOf(outer['items'])) : outer;
  const all: JsonSchema = { ...rules, ...outer, ...given };
  const examples = [listIn(rules, 'examples'), listIn(all, 'examples')].flat(2);
  const about = {
    name,
    description: textIn(all, 'description'),
    examples: [...new Set(examples.filter(isScalar).map(String))]
      .filter((it) => it.length <= 200)
      .slice(0, 20),
  };
  const pattern = safePattern(rules['pattern']);
  return {
    ...about,
    required,
    kind: kindOf(rules, about, pattern),
    choices: choicesOf(rules),
    fallback: given['default'] ?? outer['default'],
    list: isList ? [limitOf(outer, 'minItems', 1), limitOf(outer, 'maxItems', 50)] : undefined,
    accepts: (value) => accepts(rules, value) && (pattern === undefined || matches(pattern, value)),
  };
};

/** The first of several alternative schemas that is not for null. */
const firstAlternative = (rules: JsonSchema): JsonSchema => {
  const alternatives = ['anyOf', 'oneOf', 'allOf'].flatMap((key) => listIn(rules, key));
  const first = alternatives.map(recordOf).find((it) => it['type'] !== 'null');
  return { ...rules, ...first };
};

const typeOf = (rules: JsonSchema): unknown => {
  const { type } = rules;
  if (Array.isArray(type)) return type.find((it) => it !== 'null');
  return type ?? (isRecord(rules['properties']) ? 'object' : 'string');
};

const listsChoices = (rules: JsonSchema): boolean =>
  'const' in rules || Array.isArray(rules['enum']);

const choicesOf = (rules: JsonSchema): readonly Scalar[] =>
  ('const' in rules ? [rules['const']] : listIn(rules, 'enum')).filter(isScalar).slice(0, 200);

type About = Pick<Parameter, 'name' | 'description' | 'examples'>;

const kindOf = (rules: JsonSchema, about: About, pattern?: RegExp): Parameter['kind'] => {
  const type = typeOf(rules);
  if (listsChoices(rules)) return 'choice';
  if (type === 'boolean') return 'flag';
  if (type === 'number' || type === 'integer') return 'number';
  if (type !== 'string') return 'opaque';
  const { name, description, examples } = about;
  const named = kindByWords(name);
  const form = named && forms.get(named);
  return (
    kindByWords(textIn(rules, 'format')) ??
    kindByExamples(examples) ??
    (pattern !== undefined && !ordinary.some((word) => pattern.test(word)) ? 'code' : undefined) ??
    (examples.every((it) => form?.test(it) ?? true) ? named : undefined) ??
    (examples.length === 0 ? kindByWords(description) : undefined) ??
    'name'
  );
};

/** Kinds whose values have a form that hardly anything else has. */
export const forms: ReadonlyMap<Parameter['kind'], RegExp> = new Map([
  ['url', /^https?:\/\/\S{1,300}$/u],
  ['email', /^[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}$/u],
  ['date', /^\d{4}-\d\d-\d\d(?:T[\d:.]{5,20}(?:Z|[+-]\d\d:\d\d))?$/u],
  ['path', /^(?!https?:)[\w@./-]{0,200}(?:\/[\w@.-]{0,100}|\w\.[a-z]\w{0,5})$/iu],
]);

const ordinary = ['hello', 'Paris', '42', 'a', 'I', 'three words here'];

const kindByExamples = (examples: readonly string[]): Parameter['kind'] | undefined => {
  if (examples.some(isExpression)) return 'arithmetic';
  if (examples.length === 0) return undefined;
  const formed = [...forms].find(([, form]) => examples.every((it) => form.test(it)));
  return formed?.[0] ?? (examples.every(isCode) ? 'code' : undefined);
};

/** Whether a string has another form than words and numbers have: `USD`, `A-17` or `a_b`. */
const isCode = (text: string): boolean =>
  /^\p{Lu}{2,5}$/u.test(text) || (/^\S{2,40}$/u.test(text) && !/^(?:A?a|A|9)$/u.test(formOf(text)));

/** The form of a string: `ORD-1234` and `AB-7` both have `A-9`. */
export const formOf = (text: string): string =>
  text
    .replace(/\p{Lu}+/gu, 'A')
    .replace(/\p{Ll}+/gu, 'a')
    .replace(/\p{N}+/gu, '9');

const kindWords: readonly (readonly [Parameter['kind'], string])[] = [
  ['arithmetic', 'expression formula equation calculation arithmetic'],
  ['url', 'url uri link website'],
  ['email', 'email'],
  ['date', 'date day'],
  ['path', 'path file filename'],
  ['query', 'query question search keywords terms topic'],
  ['prose', 'text message content body prompt note sentence fact'],
];

const kindByWords = (text: string): Parameter['kind'] | undefined => {
  const stems = stemsIn(text);
  return kindWords.find(([, words]) => stemsIn(words).some((stem) => stems.includes(stem)))?.[0];
};

/** Whether a schema allows a value, but for its `pattern`. */
const accepts = (rules: JsonSchema, value: Scalar): boolean => {
  if (listsChoices(rules)) return choicesOf(rules).includes(value);
  if (typeof value === 'boolean') return true;
  if (typeof value === 'string') {
    const { length } = value.trim() === '' ? '' : value;
    return length >= limitOf(rules, 'minLength', 1) && length <= limitOf(rules, 'maxLength', 2_000);
  }
  const step = limitOf(rules, 'multipleOf', 0);
  return (
    (typeOf(rules) !== 'integer' || Number.isInteger(value)) &&
    (step <= 0 || Number.isInteger(value / step)) &&
    value >= limitOf(rules, 'minimum', -Infinity) &&
    value <= limitOf(rules, 'maximum', Infinity) &&
    value > limitOf(rules, 'exclusiveMinimum', -Infinity) &&
    value < limitOf(rules, 'exclusiveMaximum', Infinity)
  );
};

/** Longer values are never matched against a pattern. */
export const longestMatched = 40;

const matches = (pattern: RegExp, value: Scalar): boolean =>
  typeof value !== 'string' || (value.length <= longestMatched && pattern.test(value));

/**
 * Compiles a `pattern` if it cannot run for long, and ignores any other.
 *
 * A tool declaration may come from anywhere, and backtracking can take exponential time. So a pattern must have no
 * back references, no look-around, no repeated groups, and up to three repetitions of variable length: with
 * `longestMatched` characters that is some 10^4 steps.
 */
const safePattern = (pattern: unknown): RegExp | undefined => {
  if (typeof pattern !== 'string' || pattern.length > 200) return undefined;
  const plain = pattern.replace(/\\[^1-9k]/gu, '_').replace(/\[[^\]]*\]/gu, '_');
  const repetitions = plain.match(/[*+]|\{\d*,\d*\}/gu) ?? [];
  if (/\\|\(\?(?!:)|\)[*+{]|\{\d{4}/u.test(plain) || repetitions.length > 3) return undefined;
  try {
    return new RegExp(pattern, 'u');
  } catch {
    return undefined;
  }
};

const isScalar = (value: unknown): value is Scalar =>
  ['string', 'number', 'boolean'].includes(typeof value);

const recordOf = (value: unknown): JsonSchema => (isRecord(value) ? value : {});

const listIn = (rules: JsonSchema, key: string): readonly unknown[] => [rules[key] ?? []].flat();

const textIn = (rules: JsonSchema, key: string): string =>
  typeof rules[key] === 'string' ? rules[key].slice(0, 2_000) : '';

const limitOf = (rules: JsonSchema, key: string, otherwise: number): number =>
  Number.isFinite(rules[key]) ? Number(rules[key]) : otherwise;
