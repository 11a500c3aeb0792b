import { isRecord } from '../is-record.js';
import { inside, type Place, type Shape } from './shape.js';

/** What a vendor asks of a JSON Schema whose answers it guarantees. */
export interface ClosedSchemaRules {
  /** Whether every property must be required. */
  readonly allRequired: boolean;
  /** Keywords that it does not take. */
  readonly refused: readonly string[];
}

/** A JSON Schema that a vendor can hold a model to: its objects are closed, and its keywords are those it knows. */
export const closedSchema = (rules: ClosedSchemaRules): Shape => {
  const check: Shape = (schema, place) => {
    if (!isRecord(schema)) return [];
    return [
      ...rules.refused
        .filter((keyword) => Object.hasOwn(schema, keyword))
        .map((keyword) => `Invalid schema at '${place.path}': '${keyword}' is not permitted.`),
      ...(schema['type'] === 'object' || isRecord(schema['properties'])
        ? objectProblems(schema, place, rules)
        : []),
      ...parts(schema).flatMap(([part, key]) => check(part, inside(place, `.${key}`))),
    ];
  };
  return check;
};

const objectProblems = (
  schema: Readonly<Record<string, unknown>>,
  { path }: Place,
  { allRequired }: ClosedSchemaRules,
): readonly string[] => {
  const problems: string[] = [];
  if (schema['additionalProperties'] !== false) {
    problems.push(`Invalid schema at '${path}': 'additionalProperties' must be false.`);
  }
  const required: unknown = schema['required'];
  const names = Object.keys(isRecord(schema['properties']) ? schema['properties'] : {});
  if (allRequired && !names.every((name) => Array.isArray(required) && required.includes(name))) {
    problems.push(`Invalid schema at '${path}': 'required' must name every property.`);
  }
  return problems;
};

/** The schemas within a schema, each with where it is. */
const parts = (
  schema: Readonly<Record<string, unknown>>,
): readonly (readonly [unknown, string])[] =>
  ['properties', '$defs', 'definitions', 'items', 'anyOf'].flatMap((keyword) => {
    const part = schema[keyword];
    if (isRecord(part) && keyword === 'items') return [pair(part, keyword)];
    // The entries of an array are told by their index.
    return Object.entries(isRecord(part) || Array.isArray(part) ? part : {}).map(([key, it]) =>
      pair(it, `${keyword}.${key}`),
    );
  });

const pair = (part: unknown, key: string): readonly [unknown, string] => [part, key];
