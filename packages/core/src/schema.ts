import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { FromSchema, JSONSchema } from 'json-schema-to-ts';
import { from, map, type Observable, of } from 'rxjs';
import { messageOf, misuse } from './errors.js';
import { isRecord } from './json.js';

/** A JSON Schema, of draft 7, 2019-09 or 2020-12 as its `$schema` says; 2020-12 where it says nothing. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A schema of a library that speaks Standard Schema and can say itself as JSON Schema, as zod and arktype do. */
export type StandardSchema<Input = unknown, Output = Input> = StandardSchemaV1<Input, Output> &
  StandardJSONSchemaV1<Input, Output>;

/** What the input of a tool, or the output of a call, may be declared with. */
export type InputSchema = StandardSchema | JsonSchema;

/** What a schema makes of a value that passes it. */
export type Infer<Schema> = Schema extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<Schema>
  : JsonSchema extends Schema
    ? Readonly<Record<string, unknown>>
    : Schema extends JSONSchema
      ? FromSchema<Schema>
      : unknown;

/** What became of an input: the value to use, or what is wrong with it, one line a parameter. */
export type Validation =
  | { readonly valid: true; readonly value: unknown }
  | { readonly valid: false; readonly problems: readonly string[] };

/** A schema that has been understood. */
export interface Validator {
  readonly jsonSchema: JsonSchema;
  /** Emits one `Validation` and completes. The input itself is never changed, nor handed out. */
  readonly validation$: (input: unknown) => Observable<Validation>;
}

/** Understands a schema, or throws a `config` error that says why it cannot be used. */
export const createValidator = (schema: unknown, owner: string): Validator => {
  if (isStandardSchema(schema)) return standardValidator(schema, owner);
  if (isRecord(schema)) return jsonSchemaValidator(schema, owner);
  throw misuse(
    `${owner} is not a schema. Pass a JSON Schema such as { type: 'object', properties: {} }, or a Standard Schema such as z.object({}).`,
  );
};

const isStandardSchema = (schema: unknown): schema is StandardSchemaV1 =>
  ((typeof schema === 'object' && schema !== null) || typeof schema === 'function') &&
  '~standard' in schema;

const canSayJsonSchema = (schema: StandardSchemaV1): schema is StandardSchema =>
  'jsonSchema' in schema['~standard'];

const standardValidator = (schema: StandardSchemaV1, owner: string): Validator => {
  if (!canSayJsonSchema(schema)) {
    throw misuse(
      `${owner}: the '${schema['~standard'].vendor}' schema cannot be shown to a model, because it has no JSON Schema form. Wrap it so that it has one (for valibot: toStandardJsonSchema(schema)).`,
    );
  }
  const { validate, jsonSchema } = schema['~standard'];
  const verdict = (input: unknown, result: StandardSchemaV1.Result<unknown>): Validation =>
    result.issues === undefined
      ? { valid: true, value: result.value }
      : { valid: false, problems: some(result.issues, (issue) => describeIssue(issue, input)) };
  return {
    jsonSchema: objectSchema(jsonSchema.input({ target: 'draft-2020-12' }), owner),
    validation$: (input) => {
      const result = validate(structuredClone(input));
      return (result instanceof Promise ? from(result) : of(result)).pipe(
        map((settled) => verdict(input, settled)),
      );
    },
  };
};

const describeIssue = ({ message, path = [] }: StandardSchemaV1.Issue, input: unknown): string => {
  const keys = path.map((segment) => (typeof segment === 'object' ? segment.key : segment));
  const received = keys.reduce<unknown>(
    (value, key) => (isRecord(value) || Array.isArray(value) ? Reflect.get(value, key) : undefined),
    input,
  );
  return `${keys.map(String).join('.') || 'the input'}: ${message}${shown(received)}`;
};

const jsonSchemaValidator = (schema: JsonSchema, owner: string): Validator => {
  const jsonSchema = objectSchema(schema, owner);
  const validate = compile(jsonSchema, owner);
  return {
    jsonSchema,
    validation$: (input) => {
      const value = prune(input, jsonSchema);
      return of<Validation>(
        validate(value)
          ? { valid: true, value }
          : { valid: false, problems: some(validate.errors ?? [], describeError) },
      );
    },
  };
};

const objectSchema = (schema: JsonSchema, owner: string): JsonSchema => {
  if (schema['type'] === 'object') return schema;
  throw misuse(
    `${owner} must be the schema of an object, with a key for each value: it must say { type: 'object' }.`,
  );
};

const ajvOptions: Options = {
  strict: false,
  allErrors: true,
  verbose: true,
  validateFormats: false,
  logger: false,
};

/** One instance a draft checks schemas against their meta-schema: it keeps none of them. */
const metaValidators = new Map<typeof Ajv, Ajv>();

/** A fresh instance a schema: a shared one refuses a repeated `$id`, and keeps all it has seen. */
const compile = (schema: JsonSchema, owner: string): ValidateFunction => {
  const Draft = draftOf(schema, owner);
  const meta = metaValidators.get(Draft) ?? new Draft(ajvOptions);
  metaValidators.set(Draft, meta);
  try {
    if (meta.validateSchema(schema) !== true) throw new Error(meta.errorsText());
    return new Draft({ ...ajvOptions, meta: false, validateSchema: false }).compile(schema);
  } catch (cause) {
    throw misuse(`${owner} is not a usable JSON Schema: ${messageOf(cause)}.`);
  }
};

const draftOf = ({ $schema = 'draft/2020-12' }: JsonSchema, owner: string): typeof Ajv => {
  const id = String($schema);
  if (id.includes('draft/2020-12')) return Ajv2020;
  if (id.includes('draft/2019-09')) return Ajv2019;
  if (id.includes('draft-07')) return Ajv;
  throw misuse(
    `${owner}: '${id}' is no draft that can be checked. Use 2020-12, 2019-09 or draft-07.`,
  );
};

const describeError = ({ instancePath, keyword, params, message, data }: ErrorObject): string => {
  const path = instancePath.slice(1).replaceAll('/', '.');
  if (keyword === 'required') {
    const missing = String(params['missingProperty']);
    return `${path === '' ? missing : `${path}.${missing}`}: is required, but missing`;
  }
  const allowed = keyword === 'enum' ? `: ${JSON.stringify(params['allowedValues'])}` : '';
  return `${path || 'the input'}: ${message ?? keyword}${allowed}${shown(data)}`;
};

/** Problems that are told; a model that gets a few things right gets the rest right, too. */
const maxProblems = 20;

const some = <T>(problems: readonly T[], describe: (problem: T) => string): readonly string[] => {
  const told = problems.slice(0, maxProblems).map(describe);
  const more = problems.length - told.length;
  return more > 0 ? [...told, `and ${more} more`] : told;
};

const shown = (value: unknown): string => {
  const text = value === undefined ? 'nothing' : brief(value, 81);
  return ` (received ${text.length > 80 ? `${text.slice(0, 80)}…` : text})`;
};

/** The beginning of a value's JSON, without writing all of what may be huge. */
const brief = (value: unknown, room: number): string => {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, room));
  if (typeof value !== 'object' || value === null) return String(value);
  const isList = Array.isArray(value);
  let text = isList ? '[' : '{';
  for (const key in value) {
    if (text.length > room) return text;
    const item = brief(Reflect.get(value, key), room - text.length);
    text += `${text.length > 1 ? ',' : ''}${isList ? '' : `${JSON.stringify(key.slice(0, room))}:`}${item}`;
  }
  return `${text}${isList ? ']' : '}'}`;
};

/** Copies an input without the keys that its schema does not name, where the schema names its keys. */
const prune = (value: unknown, schema: unknown): unknown => {
  const rules = isRecord(schema) ? schema : {};
  if (Array.isArray(value)) return value.map((item) => prune(item, rules['items']));
  if (!isRecord(value)) return value;
  const properties = isRecord(rules['properties']) ? rules['properties'] : {};
  const closed = namesItsKeys(rules);
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== '__proto__' && (!closed || Object.hasOwn(properties, key)))
      .map(([key, item]) => [
        key,
        prune(item, Object.hasOwn(properties, key) ? properties[key] : undefined),
      ]),
  );
};

/** Keywords that may speak of further keys: an object under one of them is left whole. */
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
