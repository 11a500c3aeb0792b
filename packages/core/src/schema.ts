import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import type { FromSchema, JSONSchema } from 'json-schema-to-ts';
import { from, map, type Observable, of } from 'rxjs';
import { messageOf, misuse } from './errors.js';
import { isRecord } from './json.js';
import { compile, type CompileOptions } from './schema/compile.js';
import type { JsonSchema } from './schema/json-schema.js';
import {
  type Check,
  describe,
  notAt,
  ofInfinite,
  ofIssue,
  type Problem,
  tooIntricate,
} from './schema/problems.js';

/** A schema of a library that speaks Standard Schema and can say itself as JSON Schema, as zod and arktype do. */
export type StandardSchema<Input = unknown, Output = Input> = StandardSchemaV1<Input, Output> &
  StandardJSONSchemaV1<Input, Output>;

/** What the input of a tool, or the output of a call, may be declared with. */
export type InputSchema = StandardSchema | JsonSchema | ObjectSchema;

/** A JSON Schema whose type names its keywords, as those of TypeBox do. */
export interface ObjectSchema {
  readonly type: 'object';
}

/** What a schema makes of a value that passes it. */
export type Infer<Schema> = Schema extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<Schema>
  : JsonSchema extends Schema
    ? Readonly<Record<string, unknown>>
    : Schema extends JSONSchema
      ? Read<Exact<Schema>>
      : unknown;

/** A default is told to the model, but never filled in. */
type Read<Schema> = Schema extends JSONSchema
  ? FromSchema<Schema, { keepDefaultedPropertiesOptional: true }>
  : unknown;

/** A schema for pruning: unnamed keys are left out unless further ones are allowed. Lists use `prefixItems`. Optional fields stop recursion. */
type Exact<Schema> = JSONSchema extends Schema
  ? Schema
  : Schema extends { readonly properties: object }
    ? ExactObject<Schema>
    : Schema extends { readonly prefixItems: readonly unknown[] }
      ? ExactTuple<Schema>
      : Schema extends { readonly items: object }
        ? { readonly [Key in keyof Schema]: Key extends 'items' ? Exact<Schema[Key]> : Schema[Key] }
        : Schema;

type ExactObject<Schema extends { readonly properties: object }> = {
  readonly [Key in keyof Schema | Closing<Schema>]: Key extends 'properties'
    ? ExactEach<Schema['properties'], RequiredKeys<Schema>>
    : Key extends keyof Schema
      ? Schema[Key]
      : false;
};

type ExactEach<Properties, Required extends string> = {
  readonly [Key in keyof Properties | Required]: Key extends keyof Properties
    ? Exact<Properties[Key]>
    : true;
};

type Closing<Schema> =
  Extract<keyof Schema, OpenEnded> extends never ? 'additionalProperties' : never;

type RequiredKeys<Schema> = Schema extends {
  readonly required: readonly (infer Key extends string)[];
}
  ? string extends Key
    ? never
    : Key
  : never;

type ExactTuple<Schema extends { readonly prefixItems: readonly unknown[] }> = {
  readonly [
    Key in Exclude<keyof Schema, 'prefixItems'> | 'items' | 'additionalItems'
  ]: Key extends 'items'
    ? ExactItems<Schema['prefixItems']>
    : Key extends 'additionalItems'
      ? Schema extends { readonly items: infer Items }
        ? Exact<Items>
        : true
      : Schema[Key & keyof Schema];
};

type ExactItems<Items extends readonly unknown[]> = {
  readonly [Index in keyof Items]: Exact<Items[Index]>;
};

type OpenEnded =
  | 'additionalProperties'
  | 'patternProperties'
  | 'unevaluatedProperties'
  | 'propertyNames'
  | 'allOf'
  | 'anyOf'
  | 'oneOf'
  | 'not'
  | 'if'
  | 'dependentSchemas'
  | 'dependencies'
  | '$ref'
  | '$dynamicRef'
  | '$recursiveRef';

/** What became of an input: the value to use, or what is wrong with it, one line a parameter. */
export type Validation =
  | {
      readonly valid: true;
      readonly value: unknown;
      /** The input given to the schema: pruned, with hidden values, before a Standard Schema transforms it. */
      readonly input?: unknown;
    }
  | { readonly valid: false; readonly problems: readonly string[] };

/** Values that the model neither sees nor says: they are laid over what it gave, and are handed on as they are. */
export type HiddenInput = Readonly<Record<string, unknown>>;

/** A schema that has been understood. */
export interface Validator {
  readonly jsonSchema: JsonSchema;
  /** What of the schema is not held to, and why. */
  readonly warnings: readonly string[];
  /** Emits one `Validation` and completes. The input itself is never changed, nor handed out. */
  readonly validation$: (input: unknown, hidden?: HiddenInput) => Observable<Validation>;
}

export interface ValidatorOptions extends CompileOptions {
  /** Whether keys that a JSON Schema does not name are left out; else they are a problem. Default: true. */
  readonly pruneInput?: boolean;
  /** Whether a text is read as the number or truth value that a JSON Schema asks for, where it is one. Default: false. */
  readonly coerceInput?: boolean;
}

/** Understands a schema, or throws a `config` error that says why it cannot be used. */
export const createValidator = (
  schema: unknown,
  owner: string,
  options: ValidatorOptions = {},
): Validator => {
  if (isStandardSchema(schema)) return standardValidator(schema, owner, options);
  if (isRecord(schema)) return jsonSchemaValidator(schema, owner, options);
  throw misuse(
    `${owner} is not a schema. Pass a JSON Schema such as { type: 'object' }, or a Standard Schema such as z.object({}).`,
  );
};

const isStandardSchema = (schema: unknown): schema is StandardSchemaV1 =>
  ((typeof schema === 'object' && schema !== null) || typeof schema === 'function') &&
  '~standard' in schema;

const canSayJsonSchema = (schema: StandardSchemaV1): schema is StandardSchema =>
  'jsonSchema' in schema['~standard'];

const standardValidator = (
  schema: StandardSchemaV1,
  owner: string,
  options: ValidatorOptions,
): Validator => {
  if (!canSayJsonSchema(schema)) {
    const { vendor } = schema['~standard'];
    throw misuse(
      `${owner}: this ${vendor} schema cannot export JSON Schema. ${vendor === 'zod' ? 'Update zod to 4.2 or later.' : 'Wrap it so that it can (for valibot: toStandardJsonSchema(schema)).'}`,
    );
  }
  if (Object.keys(options).length > 0) {
    throw misuse(
      `${owner}: a '${schema['~standard'].vendor}' schema has its own rules for unknown keys, coercion and patterns: drop '${Object.keys(options).join("', '")}'.`,
    );
  }
  const { validate } = schema['~standard'];
  return {
    jsonSchema: objectSchema(saidAsJsonSchema(schema, owner), owner),
    warnings: [],
    validation$: (input, hidden) => {
      const { value, infinite } = prune(withoutHidden(input, hidden), anything);
      if (infinite.length > 0) {
        return of(refused(infinite.map(ofInfinite), hidden));
      }
      const whole = withHidden(value, hidden);
      const result = validate(whole);
      return ('then' in result ? from(result) : of(result)).pipe(
        map((settled) =>
          settled.issues === undefined
            ? { valid: true, value: settled.value, input: whole }
            : refused(
                settled.issues.map((issue) => ofIssue(issue, whole)),
                hidden,
              ),
        ),
      );
    },
  };
};

const saidAsJsonSchema = (schema: StandardSchema, owner: string): JsonSchema => {
  const { vendor, jsonSchema } = schema['~standard'];
  try {
    return jsonSchema.input({ target: 'draft-2020-12' });
  } catch (cause) {
    throw misuse(
      `${owner}: the '${vendor}' schema cannot be shown to a model: ${messageOf(cause)}. Use what JSON can hold, such as a string for a date, or pass a JSON Schema.`,
    );
  }
};

const jsonSchemaValidator = (
  schema: JsonSchema,
  owner: string,
  { pruneInput = true, coerceInput = false, ...options }: ValidatorOptions,
): Validator => {
  const jsonSchema = objectSchema(schema, owner);
  const { check, check$, ignored } = compile(jsonSchema, owner, options);
  return {
    jsonSchema,
    warnings: Array.from(
      ignored,
      (pattern) =>
        `${owner}: the pattern ${JSON.stringify(pattern)} cannot be checked: it is passed over.`,
    ),
    validation$: (input, hidden) => {
      const { value, unknown, infinite } = prune(
        withoutHidden(input, hidden),
        jsonSchema,
        coerceInput,
      );
      const whole = withHidden(value, hidden);
      const tooMuch = pruneInput ? [] : unknown;
      const verdict = (problemsOf: Check = () => tooIntricate): Validation => {
        const problems = [
          ...tooMuch.map((path) => ({ path, message: 'is not a parameter' })),
          ...infinite.map(ofInfinite),
          ...notAt(infinite, problemsOf(whole)),
        ];
        return problems.length === 0
          ? { valid: true, value: whole, input: whole }
          : refused(problems, hidden);
      };
      return check === undefined ? check$.pipe(map(verdict)) : of(verdict(check));
    },
  };
};

const refused = (problems: readonly Problem[], hidden: HiddenInput | undefined): Validation => ({
  valid: false,
  problems: describe(problems, hidden),
});

const anything = {};

const withoutHidden = (input: unknown, hidden: HiddenInput | undefined): unknown =>
  hidden === undefined || !isRecord(input)
    ? input
    : Object.fromEntries(Object.entries(input).filter(([name]) => !Object.hasOwn(hidden, name)));

const withHidden = (input: unknown, hidden: HiddenInput | undefined): unknown =>
  isRecord(input) ? { ...input, ...hidden } : input;

const objectSchema = (schema: JsonSchema, owner: string): JsonSchema => {
  if (schema['type'] === 'object') return schema;
  throw misuse(`${owner} must be the schema of an object: { type: 'object' }.`);
};

type Rules = Readonly<Record<string, unknown>>;

interface Pruned {
  readonly value: unknown;
  /** Where the keys were that are left out. */
  readonly unknown: readonly (readonly string[])[];
  /** Where numbers are that no JSON can say again: `1e999` is read as infinite. */
  readonly infinite: readonly (readonly string[])[];
}

/** Copies an input without keys that its schema neither names nor requires, except below keywords that allow more. With `coerces`, converts strings. */
const prune = (input: unknown, schema: unknown, coerces = false): Pruned => {
  const unknown: (readonly string[])[] = [];
  const infinite: (readonly string[])[] = [];
  const copy = (value: unknown, rules: unknown, place?: Place): unknown => {
    const known = isRecord(rules) ? rules : {};
    if (Array.isArray(value)) {
      const { items, prefixItems } = known;
      const ruleAt = (index: number): unknown =>
        Array.isArray(prefixItems) && index < prefixItems.length ? prefixItems[index] : items;
      return value.map((item: unknown, index) =>
        copy(item, ruleAt(index), { key: index, above: place }),
      );
    }
    if (typeof value === 'string') return coerces ? readAs(known['type'], value) : value;
    if (typeof value === 'number' && !Number.isFinite(value)) infinite.push(pathOf(place));
    if (!isRecord(value)) return value;
    const properties = isRecord(known['properties']) ? known['properties'] : {};
    const closed = namesItsKeys(known);
    let required: ReadonlySet<unknown> | undefined;
    const kept = Object.entries(value).filter(([key, item]) => {
      const isKnown =
        !closed || Object.hasOwn(properties, key) || (required ??= requiredBy(known)).has(key);
      const keep = isKnown && !meansPrototype(key, item);
      if (!keep) unknown.push(pathOf({ key, above: place }));
      return keep;
    });
    return Object.fromEntries(
      kept.map(([key, item]) => {
        const rule = Object.hasOwn(properties, key) ? properties[key] : undefined;
        return [key, copy(item, rule, { key, above: place })];
      }),
    );
  };
  return { value: copy(input, schema), unknown, infinite };
};

/** What a careless merge of the input would write into the prototype of all objects. */
const meansPrototype = (key: string, value: unknown): boolean =>
  key === '__proto__' ||
  (key === 'constructor' && isRecord(value) && Object.hasOwn(value, 'prototype'));

/** A text as what a schema asks for: `"5"` as 5, `"true"` as true. A number that cannot be held as it is written stays a text. */
const readAs = (type: unknown, text: string): unknown => {
  if ((type === 'number' || type === 'integer') && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/iu.test(text)) {
    const number = Number(text);
    return Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number))
      ? number
      : text;
  }
  return type === 'boolean' && (text === 'true' || text === 'false') ? text === 'true' : text;
};

/** Keys that must be there, though their schema may be named nowhere. */
const requiredBy = ({ required, dependentRequired }: Rules): ReadonlySet<unknown> => {
  const lists = isRecord(dependentRequired) ? Object.values(dependentRequired) : [];
  return new Set([required, ...lists].filter(Array.isArray).flat());
};

interface Place {
  readonly key: string | number;
  readonly above: Place | undefined;
}

const pathOf = (place: Place | undefined): readonly string[] =>
  place === undefined ? [] : [...pathOf(place.above), String(place.key)];

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
  '$recursiveRef',
];

const namesItsKeys = (rules: Rules): boolean =>
  isRecord(rules['properties']) &&
  openEnded.every((keyword) => !Object.hasOwn(rules, keyword) || rules[keyword] === false);
