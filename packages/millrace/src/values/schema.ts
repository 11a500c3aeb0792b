import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import { from, map, type Observable, of } from 'rxjs';
import { type MillraceError, messageOf, misuse } from './errors.js';
import { isRecord } from './json.js';

/** A JSON Schema of draft 7, 2019-09 or 2020-12, by its `$schema`. Default: 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A Standard Schema that can export JSON Schema, as those of zod and arktype can. */
export type StandardSchema<Input = unknown, Output = Input> = StandardSchemaV1<Input, Output> &
  StandardJSONSchemaV1<Input, Output>;

/**
 * A schema for the input of a tool or the output of a call: a Standard Schema of an object, or a JSON Schema in
 * `jsonSchema(…)`.
 */
export type InputSchema = StandardSchema<ObjectInput, unknown> | Validator;

/** A schema for the results of a tool: any Standard Schema, or a JSON Schema in `jsonSchema(…)`. */
export type OutputSchema = StandardSchemaV1 | Validator;

/** An object that is no list: lists can be iterated. */
type ObjectInput = object & { readonly [Symbol.iterator]?: never };

export type Infer<Schema> = Schema extends Typed ? TypesOf<Schema>['output'] : ValueOf<Schema>;

/** The arguments before a schema transforms them. */
export type Given<Schema> = Schema extends Typed ? TypesOf<Schema>['input'] : ValueOf<Schema>;

/** The types of a Standard Schema: cheaper to find than the whole interface. */
interface Typed {
  readonly '~standard': Pick<StandardSchemaV1.Props, 'types'>;
}

type TypesOf<Schema extends Typed> = NonNullable<Schema['~standard']['types']>;

type ValueOf<Schema> = Schema extends Validator<infer Value> ? Value : unknown;

/** The result of a validation: the value to use, or the problems, one line per parameter. */
export type Validation =
  | {
      readonly valid: true;
      readonly value: unknown;
      /** The input of the schema: pruned, with hidden values, not yet transformed by a Standard Schema. */
      readonly input?: unknown;
      /** The input of the model without nulls at optional keys, if the schema forbids them. */
      readonly repaired?: unknown;
    }
  | {
      readonly valid: false;
      readonly problems: readonly string[];
      /** Messages for `warning` events. */
      readonly warnings?: readonly string[];
    };

/** Values that the model neither sees nor sets. They override the model's arguments. */
export type HiddenInput = Readonly<Record<string, unknown>>;

/** A schema of an object that checks values. `jsonSchema` of `millrace/schema` makes one. */
export interface Validator<out Value = unknown> {
  readonly jsonSchema: JsonSchema;
  /** The parts of the schema that are not checked, and why. */
  readonly warnings?: readonly string[];
  /** Emits one result and completes. Cold. The input is copied, never changed. */
  readonly validation$: (input: unknown, hidden?: HiddenInput) => Observable<Validation>;
  /** The type of a valid value. Never set: it exists for inference only. */
  readonly type?: Value;
}

/** Returns a validator for a schema. Throws a `config` error with the reason if the schema cannot be used. */
export const validatorOf = (schema: unknown, owner: string): Validator => {
  if (isValidator(schema)) return schema;
  if (isStandardSchema(schema)) return standardValidator(schema, owner);
  throw noSchema(owner);
};

export const noSchema = (owner: string): MillraceError =>
  misuse(
    `${owner} must be a Standard Schema, such as z.object({}), or a JSON Schema in jsonSchema({ type: 'object' }), of 'millrace/schema'.`,
  );

export const isValidator = (schema: unknown): schema is Validator =>
  isRecord(schema) && typeof schema['validation$'] === 'function';

export const isStandardSchema = (schema: unknown): schema is StandardSchemaV1 =>
  ((typeof schema === 'object' && schema !== null) || typeof schema === 'function') &&
  '~standard' in schema;

export const exportsJsonSchema = (schema: StandardSchemaV1): schema is StandardSchema =>
  'jsonSchema' in schema['~standard'];

const standardValidator = (schema: StandardSchemaV1, owner: string): Validator => {
  if (!exportsJsonSchema(schema)) {
    const { vendor } = schema['~standard'];
    throw misuse(
      `${owner}: this ${vendor} schema cannot export JSON Schema. ${exportHint(schema)}`,
    );
  }
  return {
    jsonSchema: objectSchema(exportedJsonSchema(schema, owner), owner),
    validation$: (input, hidden) => {
      const infinite: Path[] = [];
      const value = copiedInput(withoutHidden(input, hidden), infinite);
      return infinite.length > 0
        ? of(refused(infinite.map(ofInfinite), hidden))
        : standardValidation$(schema, withHidden(value, hidden), hidden);
    },
  };
};

/** Validates a value as it is, without a copy. */
export const standardValidation$ = (
  schema: StandardSchemaV1,
  input: unknown,
  hidden?: HiddenInput,
): Observable<Validation> => {
  const verdict = (settled: StandardSchemaV1.Result<unknown>): Validation =>
    settled.issues === undefined
      ? { valid: true, value: settled.value, input }
      : refused(
          settled.issues.map((issue) => ofIssue(issue, input)),
          hidden,
        );
  const result = schema['~standard'].validate(input);
  return 'then' in result ? from(result).pipe(map(verdict)) : of(verdict(result));
};

const exportHint = (schema: StandardSchemaV1): string => {
  if (schema['~standard'].vendor !== 'zod') {
    return 'Wrap it so that it can (for valibot: toStandardJsonSchema(schema)).';
  }
  // Schemas of zod/mini have no methods to build others with.
  return '_zod' in schema && !('optional' in schema)
    ? "It is one of zod/mini: import { z } from 'zod', or pass jsonSchema(z.toJSONSchema(schema)) of 'millrace/schema'."
    : 'Update zod to 4.2 or later.';
};

const exportedJsonSchema = (schema: StandardSchema, owner: string): JsonSchema => {
  const { vendor, jsonSchema } = schema['~standard'];
  try {
    return jsonSchema.input({ target: 'draft-2020-12' });
  } catch (cause) {
    throw misuse(
      `${owner}: the '${vendor}' schema cannot be shown to a model: ${messageOf(cause)}. Use what JSON can hold, such as a string for a date, or pass a JSON Schema.`,
    );
  }
};

export const objectSchema = (schema: unknown, owner: string): JsonSchema => {
  if (isRecord(schema) && schema['type'] === 'object') return schema;
  throw misuse(
    `${owner} must have the type 'object' at its root: { type: 'object' }. Put a union into a property.`,
  );
};

/** The schema of a tool without parameters: it drops all keys that a model sends. */
export const noParameters: Validator<Readonly<Record<string, unknown>>> = {
  jsonSchema: { type: 'object', properties: {} },
  validation$: (input, hidden = {}) =>
    of(
      isRecord(input)
        ? { valid: true, value: hidden, input: hidden }
        : refused([{ path: [], message: 'must be object', received: input }], hidden),
    ),
};

export type Path = readonly string[];

/** Copies an input, and lists the paths of infinite numbers, which JSON cannot express: `1e999` parses as Infinity. */
const copiedInput = (input: unknown, infinite: Path[], path: Path = []): unknown => {
  const copied = (key: string, value: unknown): unknown =>
    copiedInput(value, infinite, [...path, key]);
  if (Array.isArray(input)) return input.map((item: unknown, index) => copied(String(index), item));
  if (typeof input === 'number' && !Number.isFinite(input)) infinite.push(path);
  if (!isRecord(input)) return input;
  return Object.fromEntries(
    Object.entries(input)
      .filter(([key, value]) => !meansPrototype(key, value))
      .map(([key, value]) => [key, copied(key, value)]),
  );
};

/** Whether a careless merge of this key would change the prototype of all objects. */
export const meansPrototype = (key: string, value: unknown): boolean =>
  key === '__proto__' ||
  (key === 'constructor' && isRecord(value) && Object.hasOwn(value, 'prototype'));

export const withoutKeys = <Input>(
  input: Input,
  names: readonly string[],
): Input | Readonly<Record<string, unknown>> =>
  names.length === 0 || !isRecord(input)
    ? input
    : Object.fromEntries(Object.entries(input).filter(([name]) => !names.includes(name)));

export const withoutHidden = (input: unknown, hidden: HiddenInput = {}): unknown =>
  withoutKeys(input, Object.keys(hidden));

export const withHidden = (input: unknown, hidden: HiddenInput | undefined): unknown =>
  isRecord(input) ? { ...input, ...hidden } : input;

export interface Problem {
  readonly path: Path;
  readonly message: string;
  /** Absent if the input has no value there. */
  readonly received?: unknown;
}

export const refused = (
  problems: readonly Problem[],
  hidden: HiddenInput | undefined,
): Validation => {
  const lines = describe(problems, hidden);
  origins.set(lines, problems);
  return { valid: false, problems: lines };
};

const origins = new WeakMap<readonly string[], readonly Problem[]>();

/** Returns the problems of a result without the received values; none if they are not those of `refused`. */
export const withoutValues = (lines: readonly string[]): readonly string[] =>
  describe(
    (origins.get(lines) ?? []).map(({ path, message }) => ({ path, message })),
    {},
    'the result',
  );

/** Maximum number of problems to report. A model that corrects these usually corrects the rest. */
const maxProblems = 20;

const maxPath = 200;
export const maxMessage = 300;
const maxReceived = 80;

/** One line per problem: parameter, rule and value. Hidden parameters are only reported as invalid. */
const describe = (
  problems: readonly Problem[],
  hidden: HiddenInput = {},
  whole = 'the input',
): readonly string[] => {
  const isHidden = ([name]: readonly string[]): boolean =>
    name !== undefined && Object.hasOwn(hidden, name);
  const hidesSome = Object.keys(hidden).length > 0;
  const lines = problems.slice(0, maxProblems).map(({ path, message, ...rest }) => {
    if (isHidden(path))
      return `${cut(String(path[0]), maxPath)}: the value that the program sets is not valid`;
    // A library's message about the whole may contain a hidden value.
    if (path.length === 0 && hidesSome) return 'the input as a whole is not valid';
    const where = path.join('.') || whole;
    const rule = message.startsWith(`${where} `) ? message.slice(where.length + 1) : message;
    const received = 'received' in rest ? shown(rest.received) : '';
    return `${cut(where, maxPath)}: ${cut(rule, maxMessage)}${received}`;
  });
  const more = problems.length - lines.length;
  return more > 0 ? [...lines, `and ${more} more`] : lines;
};

const ofIssue = ({ message, path = [] }: StandardSchemaV1.Issue, input: unknown): Problem => {
  // Array.from: arktype's path is a subclass of Array whose `map` returns that subclass.
  const keys = Array.from(path, (segment) => (typeof segment === 'object' ? segment.key : segment));
  const received = keys.reduce<unknown>(
    (value, key) => (isRecord(value) || Array.isArray(value) ? Reflect.get(value, key) : undefined),
    input,
  );
  return { path: keys.map(String), message, received };
};

export const ofInfinite = (path: Path): Problem => ({
  path,
  message: 'must be a number that is not too large',
});

const shown = (value: unknown): string => {
  const text = value === undefined ? 'nothing' : brief(value, maxReceived + 1);
  return ` (received ${cut(text, maxReceived)})`;
};

const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length)}…` : text;

export const brief = (value: unknown, room: number): string => {
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
