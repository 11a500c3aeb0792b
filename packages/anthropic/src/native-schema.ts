import type { JsonSchema } from 'millrace';
import { isRecord } from 'millrace/values';
import { memoizeByObject } from '@millrace/wire';

/**
 * Converts a schema to the subset of JSON Schema that Anthropic can enforce; returns `undefined` if that is impossible.
 * The result accepts the same shapes. Constraints on values (`minimum`, `pattern`, …), which the API rejects, move to
 * the description; validating the answer enforces them.
 *
 * https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
 */
export const nativeSchema = (schema: JsonSchema): JsonSchema | undefined => nativeOf(schema).native;

const nativeOf = memoizeByObject((schema: JsonSchema) => {
  const native = isCyclic(schema) ? undefined : convert(schema);
  return { native: native !== undefined && isSmall(native) ? native : undefined };
});

const copied: ReadonlySet<string> = new Set(['type', 'title', 'default', '$ref', 'required']);

/** Keywords that constrain or illustrate a value without affecting its shape. */
const bounds: ReadonlySet<string> = new Set([
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength', 'pattern', 'format'],
  ...['minItems', 'maxItems', 'uniqueItems', 'examples'],
]);

/** Keywords that are dropped: they mean nothing to a model, or are added again later. */
const ignored: ReadonlySet<string> = new Set([
  ...['$schema', '$id', '$comment', 'readOnly', 'writeOnly', 'deprecated', 'description'],
]);

const formats: readonly unknown[] = [
  ...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'],
];

type Entry = readonly [string, unknown];

const convert = (schema: unknown): JsonSchema | undefined => {
  if (!isRecord(schema) || !hasShape(schema)) return undefined;
  const entries = Object.entries(schema);
  const converted = all(entries.map(([keyword, value]) => convertKeyword(keyword, value)));
  const moved = entries
    .filter(([keyword, value]) => bounds.has(keyword) && !isAccepted(keyword, value))
    .map(([keyword, value]) => `${keyword}: ${JSON.stringify(value)}`);
  const description = [schema['description'], moved.join(', ')].filter(Boolean).join('\n');
  return converted === undefined
    ? undefined
    : Object.fromEntries([
        ...converted.flat(),
        ...(isObject(schema) ? [['additionalProperties', false] as const] : []),
        ...(description === '' ? [] : [['description', description] as const]),
      ]);
};

/** The entries for a keyword; `undefined` if it cannot be converted. */
const convertKeyword = (keyword: string, value: unknown): readonly Entry[] | undefined => {
  switch (keyword) {
    case 'properties':
    case '$defs':
    case 'definitions':
      return convertEach(keyword, value);
    case 'items': {
      const items = convert(value);
      return items === undefined ? undefined : [['items', items]];
    }
    case 'anyOf':
    case 'oneOf': {
      const variants = Array.isArray(value) ? all(value.map(convert)) : undefined;
      return variants === undefined ? undefined : [['anyOf', variants]];
    }
    case 'enum':
      return Array.isArray(value) && value.every(isPrimitive) ? [[keyword, value]] : undefined;
    case 'const':
      return isPrimitive(value) ? [[keyword, value]] : undefined;
    case 'additionalProperties':
      return value === false ? [] : undefined;
    default:
      if (copied.has(keyword) || isAccepted(keyword, value)) return [[keyword, value]];
      return bounds.has(keyword) || ignored.has(keyword) ? [] : undefined;
  }
};

const convertEach = (keyword: string, schemas: unknown): readonly Entry[] | undefined => {
  if (!isRecord(schemas)) return undefined;
  const converted = all(Object.values(schemas).map(convert));
  if (converted === undefined) return undefined;
  const keys = Object.keys(schemas);
  return [[keyword, Object.fromEntries(converted.map((schema, at) => [keys[at], schema]))]];
};

/** The constraints that the API supports. */
const isAccepted = (keyword: string, value: unknown): boolean =>
  (keyword === 'format' && formats.includes(value)) ||
  (keyword === 'minItems' && (value === 0 || value === 1));

const isPrimitive = (value: unknown): boolean => typeof value !== 'object' || value === null;

const all = <T>(values: readonly (T | undefined)[]): readonly T[] | undefined => {
  const present = values.filter((value) => value !== undefined);
  return present.length === values.length ? present : undefined;
};

const typesOf = ({ type }: JsonSchema): readonly unknown[] => (Array.isArray(type) ? type : [type]);

const isObject = (schema: JsonSchema): boolean =>
  typesOf(schema).includes('object') || isRecord(schema['properties']);

/** Whether a schema defines a type, and for objects also the keys: a map with arbitrary keys cannot be closed. */
const hasShape = (schema: JsonSchema): boolean => {
  if (['type', 'enum', 'const', '$ref', 'anyOf', 'oneOf'].every((key) => !(key in schema))) {
    return false;
  }
  if ('anyOf' in schema && 'oneOf' in schema) return false;
  if (!isObject(schema)) return !typesOf(schema).includes('array') || isRecord(schema['items']);
  const keys = Object.keys(isRecord(schema['properties']) ? schema['properties'] : {});
  const { required = [], additionalProperties } = schema;
  return (
    (keys.length > 0 || additionalProperties === false) &&
    Array.isArray(required) &&
    required.every((key) => keys.some((it) => it === key))
  );
};

const partsOf = (schema: unknown): readonly JsonSchema[] => {
  if (Array.isArray(schema)) return schema.flatMap(partsOf);
  return isRecord(schema) ? [schema, ...Object.values(schema).flatMap(partsOf)] : [];
};

/** Whether a schema refers to itself, or to a missing definition. */
const isCyclic = (schema: JsonSchema): boolean => {
  const { $defs, definitions, ...root } = schema;
  const targets = [...entriesOf('$defs', $defs), ...entriesOf('definitions', definitions)].map(
    ([reference, target]) => [reference, referencesIn(target)] as const,
  );
  const grounded = groundedIn(targets, new Set());
  return grounded.size < targets.length || !referencesIn(root).every((it) => grounded.has(it));
};

/** The references that are not cyclic, found from the leaves upwards. */
const groundedIn = (
  targets: readonly (readonly [unknown, readonly unknown[]])[],
  known: ReadonlySet<unknown>,
): ReadonlySet<unknown> => {
  const found = targets.filter(
    ([reference, needed]) => !known.has(reference) && needed.every((it) => known.has(it)),
  );
  return found.length === 0
    ? known
    : groundedIn(targets, new Set([...known, ...found.map(([reference]) => reference)]));
};

const entriesOf = (keyword: string, schemas: unknown): readonly (readonly [unknown, unknown])[] =>
  isRecord(schemas)
    ? Object.entries(schemas).map(([key, schema]) => [`#/${keyword}/${key}`, schema] as const)
    : [];

const referencesIn = (schema: unknown): readonly unknown[] =>
  partsOf(schema)
    .filter((part) => '$ref' in part)
    .map(({ $ref }) => $ref);

/** The API's limits per schema. */
const maxOptional = 24;
const maxUnions = 16;

const isSmall = (schema: JsonSchema): boolean => {
  const parts = partsOf(schema);
  const unions = parts.filter(({ type, anyOf }) => Array.isArray(type) || Array.isArray(anyOf));
  return unions.length <= maxUnions && sum(parts.map(optionalIn)) <= maxOptional;
};

const optionalIn = ({ properties, required }: JsonSchema): number =>
  Object.keys(isRecord(properties) ? properties : {}).length -
  (Array.isArray(required) ? required.length : 0);

const sum = (numbers: readonly number[]): number =>
  numbers.reduce((total, number) => total + number, 0);
