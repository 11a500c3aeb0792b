import type { JsonSchema } from '@millrace/core';
import { compilePattern } from './safe-pattern.js';
import { isRecord, kindOf, type Rules, type SlotKind, typeOf } from './slot-kind.js';

/** A parameter of a tool, as its schema tells it. */
export interface Slot {
  readonly name: string;
  readonly kind: SlotKind;
  readonly required: boolean;
  /** It takes a list of values. */
  readonly many: boolean;
  readonly description: string;
  /** All that the declaration says about it, for whoever looks for a hint. */
  readonly hints: string;
  readonly examples: readonly string[];
  /** The values that are allowed, where the schema lists them. */
  readonly choices: readonly (string | number | boolean)[];
  /** What the schema gives for a value that nobody names. */
  readonly fallback?: unknown;
  readonly whole: boolean;
  readonly minimum: number;
  readonly maximum: number;
  readonly minLength: number;
  readonly maxLength: number;
  readonly pattern?: RegExp;
}

/** Reads the parameters of a tool from its schema and its description, in the order of the schema. */
export const readSlots = (schema: JsonSchema, about = ''): readonly Slot[] => {
  const required = new Set(strings(schema['required']));
  const properties = Object.entries(recordOf(schema['properties'])).slice(0, mostSlots);
  const named = new Set(properties.map(([name]) => name));
  const unnamed = [...required]
    .filter((name) => !named.has(name))
    .map((name) => [name, {}] as const);
  return [...properties, ...unnamed].map(([name, rules]) =>
    readSlot(name, recordOf(rules), required.has(name), about),
  );
};

const mostSlots = 50;

const uuid = '^[\\da-fA-F]{8}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{12}$';

const readSlot = (name: string, given: Rules, required: boolean, tool: string): Slot => {
  const outer = alternativeOf(given);
  const many = typeOf(outer) === 'array';
  const rules = many ? alternativeOf(recordOf(outer['items'])) : outer;
  const examples = [outer, rules, given].flatMap(({ examples, example }) =>
    [...listOf(examples), example].flat().filter(isScalar).map(String),
  );
  const pattern = compilePattern(
    rules['pattern'] ?? (rules['format'] === 'uuid' ? uuid : undefined),
  );
  const description =
    [given, outer, rules].map((it) => text(it['description'])).find(Boolean) ?? '';
  const fallback = given['default'] ?? outer['default'] ?? rules['const'];
  const about = { name, description: `${text(given['title'])} ${description}`, examples, pattern };
  const hints = [name, about.description, tool.slice(0, 2_000), ...examples.slice(0, 20)].join(' ');
  return {
    name,
    required,
    many,
    description,
    hints,
    examples: [...new Set(examples)].slice(0, 20),
    choices: listOf(rules['enum']).filter(isScalar).slice(0, 500),
    kind: kindOf(rules, about),
    whole: typeOf(rules) === 'integer',
    minimum: numberOr(rules['minimum'], -Infinity),
    maximum: numberOr(rules['maximum'], Infinity),
    minLength: numberOr(rules['minLength'], 0),
    maxLength: numberOr(rules['maxLength'], Infinity),
    ...(fallback === undefined ? {} : { fallback }),
    ...(pattern === undefined ? {} : { pattern }),
  };
};

/** Of a choice between schemas, the first that is not null. */
const alternativeOf = (rules: Rules): Rules => {
  const options = [...listOf(rules['anyOf']), ...listOf(rules['oneOf'])].map(recordOf);
  const option = options.find((it) => it['type'] !== 'null');
  return option === undefined ? rules : { ...rules, ...option };
};

const isScalar = (value: unknown): value is string | number | boolean =>
  ['string', 'number', 'boolean'].includes(typeof value);

const recordOf = (value: unknown): Rules => (isRecord(value) ? value : {});

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const strings = (value: unknown): readonly string[] =>
  listOf(value).filter((it) => typeof it === 'string');

const text = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 2_000) : '');

const numberOr = (value: unknown, otherwise: number): number =>
  typeof value === 'number' ? value : otherwise;
