import { checkOptions, isFlag } from '../values/options.js';
import { misuse } from '../values/errors.js';
import { copied, frozen } from '../values/message.js';
import { withoutForbiddenNulls } from '../values/admits.js';
import { isRecord } from '../values/json.js';
import { withValues } from './tool.js';
import { isTool } from './toolkit.js';
import { type HiddenInput, type JsonSchema, withoutKeys } from '../values/schema.js';
import {
  type ContextKey,
  type ContextValues,
  isContextKey,
  noValues,
  valueOf,
} from './context-key.js';
import type { AnyRun, ToolRun } from '../values/reply.js';
import type { Tool } from './types.js';

/** The parameters of a tool. Without a known schema, they may have any name. */
type ParameterOf<Run extends AnyRun> = KeyOf<Run['input']>;

type KeyOf<Given> = unknown extends Given
  ? string
  : Given extends object
    ? keyof Given & string
    : never;

/** Values for parameters, or the keys that have them in a call. */
type Settable<Run extends AnyRun> = {
  readonly [Key in ParameterOf<Run>]?:
    ValueAt<Run['input'], Key> | ContextKey<ValueAt<Run['input'], Key>>;
};

type ValueAt<Given, Key> = unknown extends Given
  ? unknown
  : Given extends unknown
    ? Given[Key & keyof Given]
    : never;

/** The calls of a tool whose model may leave out these parameters. */
type RunWithout<Run extends AnyRun, Names> =
  Run extends ToolRun<infer Name, infer Given> ? ToolRun<Name, Without<Given, Names>> : never;

type Without<Given, Names> = Given extends object
  ? Omit<Given, Names & keyof Given> & Partial<Pick<Given, Names & keyof Given>>
  : Given;

export interface PresetOptions {
  /** Whether the model sees the parameters and may override them. Default: false. */
  readonly overridable?: boolean | undefined;
}

/**
 * Sets parameters of a tool to a value, or to the call's value of a context key. The model does not see them, and its values are ignored;
 * the set values are validated with the rest. Throws a `config` error for an unknown parameter.
 */
export const preset = <Value, Run extends AnyRun, const Set extends Settable<Run>>(
  tool: Tool<Value, Run>,
  parameters: Set,
  options: PresetOptions = {},
): Tool<Value, RunWithout<Run, keyof Set>> => {
  if (!isTool(tool)) throw misuse('preset() takes one tool, and values for its parameters.');
  const owner = `preset() of the tool '${tool.name}'`;
  checkOptions(owner, options, { overridable: isFlag });
  const names = Object.keys(parameters);
  checkParameters(owner, tool.inputSchema, names);
  const { overridable = false } = options;
  const own = Object.entries(parameters).map(
    ([name, value]) => [name, isContextKey(value) ? value : frozen(copied(value))] as const,
  );
  const keys = own.map(([, value]) => value).filter(isContextKey);
  const inputSchema = (overridable ? optional : withoutParameters)(tool.inputSchema, names);
  const { runs: _, ...rest } = tool;
  return {
    ...rest,
    hidden: [...(tool.hidden ?? []), ...(overridable ? [] : names)],
    inputSchema,
    ...(keys.length > 0 && { assertReady: both(tool.assertReady, withValues(tool.name, keys)) }),
    validation$: (input, values, hidden) => {
      const given = overridable ? withoutForbiddenNulls(input, inputSchema) : undefined;
      const isGiven = (name: string): boolean => isRecord(given) && Object.hasOwn(given, name);
      const set = own.filter(([name]) => !isGiven(name));
      return tool.validation$(input, values, { ...resolved(set, values), ...hidden });
    },
  };
};

/**
 * Sets parameters of a tool from the `extras` of earlier tools. The model does not see them, and its values are
 * ignored. Throws a `config` error for an unknown parameter.
 */
export const acceptExtras = <Value, Run extends AnyRun, const Name extends ParameterOf<Run>>(
  tool: Tool<Value, Run>,
  ...names: readonly Name[]
): Tool<Value, RunWithout<Run, Name>> => {
  if (!isTool(tool)) throw misuse('acceptExtras() takes one tool, and names of its parameters.');
  checkParameters(`acceptExtras() of the tool '${tool.name}'`, tool.inputSchema, names);
  const { runs: _, ...rest } = tool;
  return {
    ...rest,
    accepts: [...(tool.accepts ?? []), ...names],
    hidden: [...(tool.hidden ?? []), ...names],
    inputSchema: withoutParameters(tool.inputSchema, names),
    validation$: (input, values, hidden) =>
      tool.validation$(withoutKeys(input, names), values, hidden),
  };
};

const both =
  (one: Tool['assertReady'], other: NonNullable<Tool['assertReady']>): Tool['assertReady'] =>
  (call) => {
    one?.(call);
    other(call);
  };

const resolved = (
  own: readonly (readonly [string, unknown])[],
  values: ContextValues = noValues,
): HiddenInput =>
  Object.fromEntries(
    own.map(([name, value]) => [name, isContextKey(value) ? valueOf(value, values) : value]),
  );

/** The schema without some parameters, for the model. */
const withoutParameters = (schema: JsonSchema, names: readonly string[]): JsonSchema => ({
  properties: {},
  ...relax(schema, { names, hides: true }),
});

const optional = (schema: JsonSchema, names: readonly string[]): JsonSchema =>
  relax(schema, { names, hides: false });

const checkParameters = (owner: string, schema: JsonSchema, names: readonly string[]): void => {
  const known = isRecord(schema['properties']) ? Object.keys(schema['properties']) : [];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw misuse(
    `${owner} has no parameter '${unknown}'. Its parameters are: ${known.join(', ') || 'none'}.`,
  );
};

interface Relaxation {
  /** Keys of the object itself, not of nested objects. */
  readonly names: readonly string[];
  readonly hides: boolean;
}

/** Removes keys from a schema: valid objects without these keys pass. Rules that depend on them are dropped. */
const relax = (schema: JsonSchema, relaxation: Relaxation): JsonSchema => {
  const { oneOf, ...rest } = Object.fromEntries(
    Object.entries(schema)
      .map(([keyword, value]) => [keyword, relaxed(keyword, value, schema, relaxation)] as const)
      .filter(([, value]) => value !== undefined),
  );
  // The keys that made alternatives exclusive may be gone.
  if (oneOf === undefined || isSame(oneOf, schema['oneOf'])) {
    return oneOf === undefined ? rest : { ...rest, oneOf };
  }
  return rest['anyOf'] === undefined
    ? { ...rest, anyOf: oneOf }
    : { ...rest, allOf: [...asList(rest['allOf']), { anyOf: oneOf }] };
};

const relaxed = (
  keyword: string,
  value: unknown,
  schema: JsonSchema,
  relaxation: Relaxation,
): unknown => {
  const { names, hides } = relaxation;
  const part = (it: unknown): unknown => (isRecord(it) ? relax(it, relaxation) : it);
  switch (keyword) {
    case 'properties': {
      const left = hides ? without(value, names) : value;
      return isUnconstrained(left) ? undefined : left;
    }
    case 'required':
      return unlessEmpty(others(value, names));
    case 'minProperties':
      return typeof value === 'number' && value > names.length ? value - names.length : undefined;
    case 'anyOf':
    case 'oneOf': {
      const parts = asList(value).map(part);
      return parts.some(isUnconstrained) && !isSame(parts, value) ? undefined : parts;
    }
    case 'allOf':
      return unlessEmpty(
        asList(value)
          .map(part)
          .filter((it) => !isUnconstrained(it)),
      );
    case 'not':
      return constrains(value, names) ? undefined : value;
    case 'if':
    case 'then':
    case 'else':
      if (constrains(schema['if'], names)) return undefined;
      return keyword === 'if' ? value : part(value);
    case 'dependentRequired':
    case 'dependentSchemas':
    case 'dependencies':
      return dependent(hides ? without(value, names) : value, relaxation);
    case 'const':
      return hides || isSame(value, without(value, names)) ? without(value, names) : undefined;
    case 'enum':
      return each(value, names, hides);
    case 'default':
      return hides ? without(value, names) : value;
    case 'examples':
      return hides && Array.isArray(value) ? value.map((it: unknown) => without(it, names)) : value;
    case 'propertyNames':
    case 'patternProperties':
      return hides ? ofNames(keyword, value, names) : value;
    case 'additionalProperties':
    case 'unevaluatedProperties':
      // Keys of a hidden pattern count as additional ones.
      return hides && mentions(schema['patternProperties'], names) ? undefined : value;
    default:
      return value;
  }
};

const dependent = (value: unknown, relaxation: Relaxation): unknown => {
  if (!isRecord(value)) return value;
  const left = Object.entries(value)
    .map(([key, it]) => {
      if (Array.isArray(it)) return [key, unlessEmpty(others(it, relaxation.names))] as const;
      return [key, isRecord(it) ? relax(it, relaxation) : it] as const;
    })
    .filter(([, it]) => it !== undefined && !isUnconstrained(it));
  return left.length === 0 ? undefined : Object.fromEntries(left);
};

/** The allowed values: without the keys, and also with them if the keys are optional. */
const each = (values: unknown, names: readonly string[], hides: boolean): unknown => {
  if (!Array.isArray(values)) return values;
  const bare = values.map((it: unknown) => without(it, names));
  const all = hides ? bare : [...asList(values), ...bare];
  return [...new Map(all.map((it) => [JSON.stringify(it), it])).values()];
};

const ofNames = (keyword: string, value: unknown, names: readonly string[]): unknown => {
  if (!mentions(value, names) || !isRecord(value)) return value;
  if (keyword === 'propertyNames') {
    return Array.isArray(value['enum']) && Object.keys(value).length === 1
      ? { enum: others(value['enum'], names) }
      : undefined;
  }
  const left = Object.entries(value).filter(([pattern]) => !mentions(pattern, names));
  return left.length === 0 ? undefined : Object.fromEntries(left);
};

const mentions = (value: unknown, names: readonly string[]): boolean => {
  const text = JSON.stringify([value]);
  return names.some((name) => text.includes(JSON.stringify(name).slice(1, -1)));
};

const constrains = (schema: unknown, names: readonly string[]): boolean =>
  isRecord(schema) && !isSame(relax(schema, { names, hides: true }), schema);

const isUnconstrained = (schema: unknown): boolean =>
  schema === true || (isRecord(schema) && Object.keys(schema).length === 0);

const isSame = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

const without = (value: unknown, names: readonly string[]): unknown =>
  isRecord(value)
    ? Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)))
    : value;

const others = (value: unknown, names: readonly string[]): readonly unknown[] =>
  asList(value).filter((name) => !names.some((it) => it === name));

const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const unlessEmpty = (list: readonly unknown[]): readonly unknown[] | undefined =>
  list.length === 0 ? undefined : list;
