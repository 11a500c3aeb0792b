import type { JsonSchema } from '@millrace/core';
import { isRecord } from '@millrace/core/adapter';

/**
 * Writes the schema of a tool's input as OpenAI takes it: an object with `properties`, lists with `items`. What it
 * refuses at the top (a choice of schemas, a list of values) is told in the description; whoever validates the input
 * looks after it.
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

/** Tells whether the schema that is written says all that the schema says. */
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

/** A list without `items` is refused wherever it stands. */
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

/** Keywords that hold schemas by name, and those that hold one, or a list of them. */
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
