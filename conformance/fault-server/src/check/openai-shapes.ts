import { isRecord } from '../is-record.js';
import { closedSchema } from './closed-schema.js';
import {
  also,
  boolean,
  type Fields,
  name,
  nullable,
  object,
  record,
  rule,
  type Shape,
  string,
} from './shape.js';
import { stringAt } from './records.js';

/** A schema for strict mode. https://platform.openai.com/docs/guides/structured-outputs#supported-schemas */
const strictSchema = closedSchema({
  allRequired: true,
  refused: [
    ...['allOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas'],
    ...['patternProperties', 'propertyNames', 'minProperties', 'maxProperties'],
    ...['unevaluatedProperties', 'unevaluatedItems', 'contains', 'minContains', 'maxContains'],
    ...['uniqueItems', 'minLength', 'maxLength'],
  ],
});

const objectRoot = rule(
  `schema must be a JSON Schema of 'type: "object"'`,
  (schema) => schema['type'] === 'object',
);

/** The schema of a function's input, strict or not. */
const parameters = also(
  record,
  objectRoot,
  rule(`object schema missing properties`, (schema) => isRecord(schema['properties'])),
  rule(`schema must not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.`, (schema) =>
    ['oneOf', 'anyOf', 'allOf', 'enum', 'not'].every((key) => !(key in schema)),
  ),
);

/** What strictness asks of the schema beside it. */
const strictly =
  (key: string): Shape =>
  (value, place) =>
    isRecord(value) && value['strict'] === true
      ? also(
          record,
          objectRoot,
          rule(`'anyOf' is not permitted at the root`, (it) => !('anyOf' in it)),
          strictSchema,
        )(value[key], { ...place, path: `${place.path}.${key}` })
      : [];

/** The declaration of a function. `tag` and `optional` are what the Responses wire has beside its fields. */
export const functionShape = (tag: Fields = {}, optional: Fields = {}): Shape =>
  also(
    object(
      { ...tag, name },
      {
        description: nullable(string),
        parameters: nullable(parameters),
        strict: nullable(boolean),
        ...optional,
      },
    ),
    strictly('parameters'),
  );

/** The format of an answer as JSON of a schema. `tag` is what the Responses wire has beside its fields. */
export const schemaFormat = (tag: Fields = {}): Shape =>
  also(
    object({ ...tag, name, schema: record }, { description: string, strict: nullable(boolean) }),
    strictly('schema'),
  );

/** Models that think by themselves refuse to be steered otherwise. */
export const isReasoningModel = (body: Readonly<Record<string, unknown>>): boolean =>
  /^(o\d|gpt-5(-mini|-nano)?(-\d{4}-\d{2}-\d{2})?$)/.test(stringAt(body, 'model'));
