import { misuse } from '../errors.js';
import { isRecord } from '../json.js';
import type { JsonSchema } from '../schema/json-schema.js';

/** The schema that a model is shown, without some parameters: it cannot say what it does not know of. */
export const withoutParameters = (schema: JsonSchema, names: readonly string[]): JsonSchema => {
  const properties = isRecord(schema['properties']) ? schema['properties'] : {};
  const isShown = ([name]: readonly [string, unknown]): boolean => !names.includes(name);
  return {
    ...optional(schema, names),
    properties: Object.fromEntries(Object.entries(properties).filter(isShown)),
  };
};

/** The same schema, with some parameters that need not be given. */
export const optional = (schema: JsonSchema, names: readonly string[]): JsonSchema => {
  const { required, ...rest } = schema;
  if (!Array.isArray(required)) return schema;
  const left = required.filter((name) => !names.some((it) => it === name));
  return left.length > 0 ? { ...rest, required: left } : rest;
};

/** Refuses names of parameters that a schema does not have: they would be given in vain. */
export const checkParameters = (
  owner: string,
  schema: JsonSchema,
  names: readonly string[],
): void => {
  const known = isRecord(schema['properties']) ? Object.keys(schema['properties']) : [];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw misuse(
    `${owner} has no parameter '${unknown}'. Its parameters are: ${known.join(', ') || 'none'}.`,
  );
};

/** An input without some parameters. */
export const withoutKeys = <Input>(
  input: Input,
  names: readonly string[],
): Input | Readonly<Record<string, unknown>> =>
  names.length === 0 || !isRecord(input)
    ? input
    : Object.fromEntries(Object.entries(input).filter(([name]) => !names.includes(name)));
