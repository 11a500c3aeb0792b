import { isRecord } from '../json.js';

type Rules = Readonly<Record<string, unknown>>;

/** An input without the keys that its schema does not name. */
export interface Pruned {
  readonly value: unknown;
  /** Where the keys were that are left out. */
  readonly unknown: readonly (readonly string[])[];
  /** Where numbers are that no JSON can say again: `1e999` is read as infinite. */
  readonly infinite: readonly (readonly string[])[];
}

/**
 * Copies an input without the keys that its schema neither names nor requires, where the schema names its keys. It does not reach
 * through keywords that may speak of further keys: an object under one of them is left whole. Where it `coerces`, it reads a text as the number or
 * the truth value that the schema asks for, where the text is one.
 */
export const prune = (input: unknown, schema: unknown, coerces = false): Pruned => {
  const unknown: (readonly string[])[] = [];
  const infinite: (readonly string[])[] = [];
  const copy = (value: unknown, rules: unknown, place?: Place): unknown => {
    const known = isRecord(rules) ? rules : {};
    if (Array.isArray(value)) {
      const { items, prefixItems } = known;
      const ruleAt = (index: number): unknown =>
        Array.isArray(prefixItems) && index < prefixItems.length ? prefixItems[index] : items;
      return value.map((item: unknown, index) =>
        copy(item, ruleAt(index), { key: index, above: place }),
      );
    }
    if (typeof value === 'string') return coerces ? readAs(known['type'], value) : value;
    if (typeof value === 'number' && !Number.isFinite(value)) infinite.push(pathOf(place));
    if (!isRecord(value)) return value;
    const properties = isRecord(known['properties']) ? known['properties'] : {};
    const closed = namesItsKeys(known);
    let required: ReadonlySet<unknown> | undefined;
    const isRequired = (key: string): boolean => (required ??= requiredBy(known)).has(key);
    const ruleOf = (key: string): unknown =>
      Object.hasOwn(properties, key) ? properties[key] : undefined;
    const kept = Object.entries(value).filter(([key]) => {
      const isKnown = !closed || Object.hasOwn(properties, key) || isRequired(key);
      const keep = isKnown && key !== '__proto__';
      if (!keep) unknown.push(pathOf({ key, above: place }));
      return keep;
    });
    return Object.fromEntries(
      kept.map(([key, item]) => [key, copy(item, ruleOf(key), { key, above: place })]),
    );
  };
  return { value: copy(input, schema), unknown, infinite };
};

/** A text as what a schema asks for: `"5"` as 5, `"true"` as true. A number that cannot be held as it is written stays a text. */
const readAs = (type: unknown, text: string): unknown => {
  if ((type === 'number' || type === 'integer') && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/iu.test(text)) {
    const number = Number(text);
    return Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number))
      ? number
      : text;
  }
  return type === 'boolean' && (text === 'true' || text === 'false') ? text === 'true' : text;
};

/** Keys that must be there, though their schema may be named nowhere. */
const requiredBy = ({ required, dependentRequired }: Rules): ReadonlySet<unknown> => {
  const lists = isRecord(dependentRequired) ? Object.values(dependentRequired) : [];
  return new Set([required, ...lists].filter(Array.isArray).flat());
};

/** Where a value is. A path that nobody asks for is not written out. */
interface Place {
  readonly key: string | number;
  readonly above: Place | undefined;
}

const pathOf = (place: Place | undefined): readonly string[] =>
  place === undefined ? [] : [...pathOf(place.above), String(place.key)];

/** Keywords that may speak of further keys. */
const openEnded = [
  'additionalProperties',
  'patternProperties',
  'unevaluatedProperties',
  'propertyNames',
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'if',
  'dependentSchemas',
  'dependencies',
  '$ref',
  '$dynamicRef',
  '$recursiveRef',
];

const namesItsKeys = (rules: Rules): boolean =>
  isRecord(rules['properties']) &&
  openEnded.every((keyword) => !Object.hasOwn(rules, keyword) || rules[keyword] === false);
