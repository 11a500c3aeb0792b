import type { JsonSchema } from 'millrace';
import { isRecord } from 'millrace/values';

/**
 * Adapts the input schema of a tool to OpenAI: an object with `properties`, and arrays with `items`. Keywords that it
 * rejects at the top level (`anyOf`, `enum`, …) move to the description; validating the input enforces them.
 */
export const toolSchema = (schema: JsonSchema): JsonSchema => {
  const moved = Object.entries(schema)
    .filter(([keyword, value]) => refusedAtTop.has(keyword) && value !== undefined)
    .map(([keyword, value]) => `${keyword}: ${JSON.stringify(value)}`);
  const kept = Object.entries(withItems(schema)).filter(([keyword]) => !refusedAtTop.has(keyword));
  const description = [schema['description'], ...moved].filter(Boolean).join('\n');
  const { properties, ...rest }: JsonSchema = Object.fromEntries(kept);
  return {
    ...rest,
    type: 'object',
    ...(description === '' ? {} : { description }),
    properties: isRecord(properties) ? properties : {},
  };
};

/** Whether no keyword of a schema moves to the description. */
export const hasNoRefusedKeywords = (schema: JsonSchema): boolean =>
  [...refusedAtTop].every((keyword) => schema[keyword] === undefined);

const refusedAtTop: ReadonlySet<string> = new Set([
  'anyOf',
  'oneOf',
  'allOf',
  'enum',
  'const',
  'not',
]);

/** Arrays without `items` are rejected at any depth. */
const withItems = (schema: JsonSchema): JsonSchema => {
  const written = Object.entries(schema).map(
    ([keyword, value]) => [keyword, partsWithItems(keyword, value)] as const,
  );
  const { type, items } = schema;
  const isList = type === 'array' || (Array.isArray(type) && type.includes('array'));
  return {
    ...Object.fromEntries(written),
    ...(isList && items === undefined ? { items: {} } : {}),
  };
};

const partsWithItems = (keyword: string, value: unknown): unknown => {
  if (schemaMaps.has(keyword) && isRecord(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, partOf(it)]));
  }
  if (!schemaKeywords.has(keyword)) return value;
  return Array.isArray(value) ? value.map(partOf) : partOf(value);
};

const partOf = (value: unknown): unknown => (isRecord(value) ? withItems(value) : value);

/** Keywords whose value is a map of schemas, and those whose value is a schema or a list of schemas. */
const schemaMaps: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
]);
const schemaKeywords: ReadonlySet<string> = new Set([
  'items',
  'prefixItems',
  'additionalProperties',
  'anyOf',
  'oneOf',
  'allOf',
  'not',
]);
