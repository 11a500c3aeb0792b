import { misuse } from '../errors.js';
import { isRecord } from '../json.js';
import type { JsonSchema } from '../schema/json-schema.js';
import { relax } from '../schema/relax.js';

/** The schema that a model is shown, without some parameters: it cannot say what it does not know of. */
export const withoutParameters = (schema: JsonSchema, names: readonly string[]): JsonSchema => ({
  properties: {},
  ...relax(schema, { names, hides: true }),
});

/** The same schema, with some parameters that need not be given. */
export const optional = (schema: JsonSchema, names: readonly string[]): JsonSchema =>
  relax(schema, { names, hides: false });

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

export const withoutKeys = <Input>(
  input: Input,
  names: readonly string[],
): Input | Readonly<Record<string, unknown>> =>
  names.length === 0 || !isRecord(input)
    ? input
    : Object.fromEntries(Object.entries(input).filter(([name]) => !names.includes(name)));
