import type { FromSchema, JSONSchema } from 'json-schema-to-ts';
import { map } from 'rxjs';
import { deferWork } from '../flow/eventual.js';
import { type MillraceError, misuse } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import { checkOptions, isFlag, isFunction, type Rule } from '../values/options.js';
import {
  type JsonSchema,
  meansPrototype,
  objectSchema,
  ofInfinite,
  type Path,
  type Problem,
  refused,
  type Validation,
  type Validator,
  withHidden,
  withoutHidden,
} from '../values/schema.js';
import { compile, type PatternEngine } from './compile.js';
import { type Check, tooIntricate } from './problems.js';

export type { PatternEngine } from './compile.js';

/** A JSON Schema whose type names its keywords, as those of TypeBox do. */
interface ObjectSchema {
  readonly type: 'object';
}

/** Refuses a schema that is known not to have the type `object` at its root. */
type Rooted<Schema> = Schema extends ObjectSchema
  ? unknown
  : JsonSchema extends Schema
    ? unknown
    : Schema extends { readonly type: infer Type }
      ? string extends Type
        ? unknown
        : ObjectSchema
      : ObjectSchema;

/** The type of a value that matches a JSON Schema. */
type FromJsonSchema<Schema> = JsonSchema extends Schema
  ? Readonly<Record<string, unknown>>
  : Read<Exact<Schema>>;

interface JsonSchemaOptions {
  /** Whether unknown keys are dropped; otherwise they are a problem. Default: true. */
  readonly pruneInput?: boolean | undefined;
  /** Whether strings are converted to numbers and booleans as the schema requires. Default: false. */
  readonly coerceInput?: boolean | undefined;
  /** The engine for patterns. Use a linear-time engine for untrusted schemas. Default: that of the platform. */
  readonly patterns?: PatternEngine | undefined;
}

/**
 * Creates a schema for tools and outputs from a JSON Schema of an object, of draft 2020-12, 2019-09 or 07. Compiled once; platforms without code generation interpret it.
 * Unknown keys are dropped, unless the schema allows them. Defaults are shown to the model, but not filled in. Throws a `config` error if the schema is invalid.
 *
 * @example
 * ```ts
 * const input = jsonSchema({ type: 'object', properties: { city: { type: 'string' } }, required: ['city'] });
 * tool({ name: 'weather', description: 'Returns the weather.', input, run: ({ city }) => `Snow in ${city}.` });
 * ```
 */
export const jsonSchema = <const Schema extends JsonSchema | ObjectSchema>(
  schema: Schema & Rooted<Schema>,
  options: JsonSchemaOptions = {},
): Validator<FromJsonSchema<Schema>> => {
  checkOptions('jsonSchema()', options, rules);
  const { pruneInput = true, coerceInput = false, patterns } = options;
  if ('~standard' in schema || 'validation$' in schema) throw given();
  const rulesOf = objectSchema(schema, 'jsonSchema(): the schema');
  const { check, check$, ignored } = compile(rulesOf, patterns);
  return {
    jsonSchema: rulesOf,
    warnings: Array.from(
      ignored,
      (pattern) => `the pattern ${JSON.stringify(pattern)} is not supported: it is ignored.`,
    ),
    validation$: (input, hidden) => {
      const { value, unknown, infinite } = prune(
        withoutHidden(input, hidden),
        rulesOf,
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
      return check === undefined ? check$.pipe(map(verdict)) : deferWork(() => verdict(check));
    },
  };
};

const rules: Readonly<Record<keyof JsonSchemaOptions, Rule>> = {
  pruneInput: isFlag,
  coerceInput: isFlag,
  patterns: isFunction,
};

const given = (): MillraceError =>
  misuse("jsonSchema() takes a JSON Schema. Pass other schemas to 'input' or output() directly.");

const notAt = (places: readonly Path[], problems: readonly Problem[]): readonly Problem[] => {
  if (places.length === 0) return problems;
  const known = new Set(places.map((path) => JSON.stringify(path)));
  return problems.filter(({ path }) => !known.has(JSON.stringify(path)));
};

/** Defaults are not filled in. */
type Read<Schema> = Schema extends JSONSchema
  ? FromSchema<Schema, { keepDefaultedPropertiesOptional: true }>
  : unknown;

/** A type without unknown keys, unless they are allowed. Lists use `prefixItems`. Optional fields stop recursion. */
type Exact<Schema> = Schema extends Leaf
  ? Schema
  : Schema extends { readonly properties: object }
    ? ExactObject<Schema>
    : Schema extends { readonly prefixItems: readonly unknown[] }
      ? ExactTuple<Schema>
      : Schema extends { readonly items: object }
        ? { readonly [Key in keyof Schema]: Key extends 'items' ? Exact<Schema[Key]> : Schema[Key] }
        : Schema;

/** Nothing below it can be closed. Any other schema is one, too. */
type Leaf = boolean | { readonly type: 'string' | 'number' | 'integer' | 'boolean' | 'null' };

/** Most objects have nothing below to close: an intersection costs less than a copy. */
type ExactObject<Schema extends { readonly properties: object }> =
  Schema['properties'] extends Leaves & Readonly<Record<RequiredKeys<Schema>, Leaf>>
    ? Schema & Closing<Schema>
    : CopiedObject<Schema>;

type Leaves = Readonly<Record<string, Leaf>>;

type CopiedObject<Schema extends { readonly properties: object }> = {
  readonly [Key in keyof Schema | keyof Closing<Schema>]: Key extends 'properties'
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
  Extract<keyof Schema, OpenEnded> extends never
    ? { readonly additionalProperties: false }
    : unknown;

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

interface Pruned {
  readonly value: unknown;
  /** The paths of dropped keys. */
  readonly unknown: readonly Path[];
  /** The paths of infinite numbers, which JSON cannot express. */
  readonly infinite: readonly Path[];
}

/** Copies an input without keys that its schema neither names, requires nor allows. `coerces` converts strings. */
const prune = (input: unknown, schema: unknown, coerces = false): Pruned => {
  const unknown: Path[] = [];
  const infinite: Path[] = [];
  /** Of the value that is copied now. */
  const path: string[] = [];
  const copyAt = (key: string, value: unknown, subschema: unknown): unknown => {
    path.push(key);
    const copied = copy(value, subschema);
    path.pop();
    return copied;
  };
  const copy = (value: unknown, subschema: unknown): unknown => {
    const known = isRecord(subschema) ? subschema : {};
    if (Array.isArray(value)) {
      const { items, prefixItems } = known;
      const ruleAt = (index: number): unknown =>
        Array.isArray(prefixItems) && index < prefixItems.length ? prefixItems[index] : items;
      return value.map((item: unknown, index) => copyAt(String(index), item, ruleAt(index)));
    }
    if (typeof value === 'string') return coerces ? readAs(known['type'], value) : value;
    if (typeof value === 'number' && !Number.isFinite(value)) infinite.push([...path]);
    if (!isRecord(value)) return value;
    const properties = isRecord(known['properties']) ? known['properties'] : {};
    const closed = namesItsKeys(known);
    let required: ReadonlySet<unknown> | undefined;
    const kept: [string, unknown][] = [];
    for (const [key, item] of Object.entries(value)) {
      const hasRule = Object.hasOwn(properties, key);
      const isKnown = !closed || hasRule || (required ??= requiredBy(known)).has(key);
      if (!isKnown || meansPrototype(key, item)) unknown.push([...path, key]);
      else kept.push([key, copyAt(key, item, hasRule ? properties[key] : undefined)]);
    }
    return Object.fromEntries(kept);
  };
  return { value: copy(input, schema), unknown, infinite };
};

/** Converts a string to a schema's type: `"5"` to 5, `"true"` to true; not a number that cannot be represented exactly. */
const readAs = (type: unknown, text: string): unknown => {
  if ((type === 'number' || type === 'integer') && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/iu.test(text)) {
    const number = Number(text);
    return Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number))
      ? number
      : text;
  }
  return type === 'boolean' && (text === 'true' || text === 'false') ? text === 'true' : text;
};

/** Required keys, which may have no schema. */
const requiredBy = ({ required, dependentRequired }: JsonSchema): ReadonlySet<unknown> => {
  const lists = isRecord(dependentRequired) ? Object.values(dependentRequired) : [];
  return new Set([required, ...lists].filter(Array.isArray).flat());
};

const openEnded: ReadonlySet<string> = new Set([
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
]);

const namesItsKeys = (subschema: JsonSchema): boolean =>
  isRecord(subschema['properties']) &&
  Object.keys(subschema).every(
    (keyword) => subschema[keyword] === false || !openEnded.has(keyword),
  );
