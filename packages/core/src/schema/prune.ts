import { isRecord } from '../json.js';

/** An input without the keys that its schema does not name. */
export interface Pruned {
  readonly value: unknown;
  /** Where the keys were that are left out. */
  readonly unknown: readonly (readonly string[])[];
}

/**
 * Copies an input without the keys that its schema does not name, where the schema names its keys. It does not reach
 * through keywords that may speak of further keys: an object under one of them is left whole.
 */
export const prune = (input: unknown, schema: unknown): Pruned => {
  const unknown: (readonly string[])[] = [];
  const copy = (value: unknown, rules: unknown, place?: Place): unknown => {
    const known = isRecord(rules) ? rules : {};
    if (Array.isArray(value)) {
      return value.map((item: unknown, index) =>
        typeof item === 'object' ? copy(item, known['items'], { key: index, above: place }) : item,
      );
    }
    if (!isRecord(value)) return value;
    const properties = isRecord(known['properties']) ? known['properties'] : {};
    const closed = namesItsKeys(known);
    const ruleOf = (key: string): unknown =>
      Object.hasOwn(properties, key) ? properties[key] : undefined;
    const kept = Object.entries(value).filter(([key]) => {
      const keep = key !== '__proto__' && (!closed || Object.hasOwn(properties, key));
      if (!keep) unknown.push(pathOf({ key, above: place }));
      return keep;
    });
    return Object.fromEntries(
      kept.map(([key, item]) => [key, copy(item, ruleOf(key), { key, above: place })]),
    );
  };
  return { value: copy(input, schema), unknown };
};

/** Where a value is. A path that nobody asks for is not written out. */
interface Place {
  readonly key: string | number;
  readonly above: Place | undefined;
}

const pathOf = ({ key, above }: Place): readonly string[] => [
  ...(above === undefined ? [] : pathOf(above)),
  String(key),
];

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
];

const namesItsKeys = (rules: Readonly<Record<string, unknown>>): boolean =>
  isRecord(rules['properties']) &&
  openEnded.every((keyword) => !Object.hasOwn(rules, keyword) || rules[keyword] === false);
