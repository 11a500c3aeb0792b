import type { JsonSchema } from 'millrace';
import { isRecord } from 'millrace/values';
import { at, type JsonRecord, listAt } from '@millrace/wire';

/** The keywords that OpenAI supports in strict mode (guide "Structured outputs", supported schemas). */
const supported: ReadonlySet<string> = new Set([
  '$defs',
  '$ref',
  '$schema',
  'additionalProperties',
  'anyOf',
  'const',
  'definitions',
  'description',
  'enum',
  'exclusiveMaximum',
  'exclusiveMinimum',
  'format',
  'items',
  'maxItems',
  'maximum',
  'minItems',
  'minimum',
  'multipleOf',
  'properties',
  'required',
  'title',
  'type',
]);

const formats: ReadonlySet<unknown> = new Set([
  'date',
  'date-time',
  'duration',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'time',
  'uuid',
]);

const maxDepth = 10;

/**
 * Sets `additionalProperties: false` on objects that leave it open, so that OpenAI can enforce the schema. A value that
 * matches the result matches the original. Returns `undefined` if strict mode still does not support the schema.
 */
export const strictSchema = (schema: JsonSchema): JsonSchema | undefined => {
  const closed = close(schema);
  return isRecord(closed) && isStrictSchema(closed) ? closed : undefined;
};

/** An object without properties may be a map with arbitrary keys: it stays open. */
const close = (schema: unknown): unknown => {
  if (!isRecord(schema)) return schema;
  const entries = Object.entries(schema).map(([keyword, value]) => {
    if (isNamed(keyword) && isRecord(value)) return [keyword, closeEach(value)] as const;
    if (keyword === 'items') return [keyword, close(value)] as const;
    if (keyword === 'anyOf' && Array.isArray(value)) return [keyword, value.map(close)] as const;
    return [keyword, value] as const;
  });
  const { properties, additionalProperties } = schema;
  const isOpen =
    isRecord(properties) &&
    Object.keys(properties).length > 0 &&
    additionalProperties === undefined;
  return { ...Object.fromEntries(entries), ...(isOpen ? { additionalProperties: false } : {}) };
};

const closeEach = (schemas: JsonRecord): JsonRecord =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, close(schema)]));

/** The keywords whose value is a map of schemas. */
const namedSchemas: readonly string[] = ['properties', '$defs', 'definitions'];
const isNamed = (keyword: string): boolean => namedSchemas.includes(keyword);

/**
 * Whether OpenAI can enforce a schema: the root is an object, every object is closed with all keys required, all
 * keywords are supported, and it has up to 10 levels.
 */
export const isStrictSchema = (schema: JsonSchema): boolean =>
  schema['type'] === 'object' && schema['anyOf'] === undefined && isStrict(schema, 1);

const isStrict = (schema: unknown, depth: number): boolean =>
  isRecord(schema) &&
  depth <= maxDepth &&
  Object.keys(schema).every((keyword) => supported.has(keyword)) &&
  isTyped(schema) &&
  (schema['$ref'] === undefined || Object.keys(schema).length === 1) &&
  (schema['format'] === undefined || formats.has(schema['format'])) &&
  (!isObject(schema) || isClosed(schema)) &&
  !constrainsKeysTwice(schema) &&
  partsOf(schema).every((part) => isStrict(part, depth + 1));

const isTyped = (schema: JsonRecord): boolean =>
  ['type', 'anyOf', '$ref', 'enum', 'const'].some((keyword) => Object.hasOwn(schema, keyword));

/**
 * Whether a schema constrains the keys of one object in several places. Closing each of them would forbid the keys of
 * the others, and nothing would match.
 */
const constrainsKeysTwice = (schema: JsonRecord): boolean =>
  choices.some((keyword) => schema[keyword] !== undefined) &&
  (isObject(schema) || ofKeys.some((keyword) => schema[keyword] !== undefined));

const choices: readonly string[] = ['anyOf', 'enum', 'const'];
const ofKeys: readonly string[] = ['required', 'additionalProperties'];

const isObject = ({ type, properties }: JsonRecord): boolean =>
  type === 'object' || (Array.isArray(type) && type.includes('object')) || properties !== undefined;

const isClosed = ({ properties, required, additionalProperties }: JsonRecord): boolean => {
  const names = isRecord(properties) ? Object.keys(properties) : [];
  const all = listAt(required);
  return (
    additionalProperties === false &&
    all.length === names.length &&
    names.every((name) => all.includes(name))
  );
};

const partsOf = (schema: JsonRecord): readonly unknown[] => [
  ...namedSchemas.flatMap((keyword) => {
    const named = at(schema, keyword);
    return isRecord(named) ? Object.values(named) : [];
  }),
  ...(schema['items'] === undefined ? [] : [schema['items']]),
  ...listAt(schema, 'anyOf'),
];
