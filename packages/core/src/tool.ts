import {
  checkOptions,
  defined,
  isDelay,
  isFlag,
  isFunction,
  listOf,
  oneOf,
  type Rule,
  wholeNumber,
} from './options.js';
import { made$ } from './contained.js';
import type { PatternEngine } from './schema/compile.js';
import { createValidator, type Infer, type InputSchema } from './schema.js';
import { emissions } from './tools/emissions.js';
import { checkParameters, withoutKeys, withoutParameters } from './tools/parameters.js';
import type { Approver, Tool, ToolContext, ToolPolicy, ToolRetry } from './tools/types.js';

/** The schema of a tool that declares no input. */
export type NoParameters = Readonly<Record<'type', 'object'>>;

/** What `tool()` makes a tool of. */
export interface ToolDefinition<Schema> extends Omit<ToolPolicy, 'approve'> {
  /** What the model calls it: up to 256 characters of any script. A name that a provider refuses is mapped on the wire. */
  readonly name: string;
  /** Tells the model what it is for, and when to use it. */
  readonly description: string;
  /** The parameters. Default: none. */
  readonly input?: Schema;
  /** Whether a run may start: yes, no, or a function that decides, with the validated input. It may change the input. Default: yes. */
  readonly approve?: boolean | Approver<Infer<Schema>>;
  /** Does the work. Returns a value, a Promise, a generator, an AsyncIterable or an Observable; values of the latter three are progress. The output is what a generator returns, else all emitted strings joined, else the last value. Errors are reported to the model. */
  readonly run: (input: Infer<Schema>, context: ToolContext) => unknown;
  /** Whether parameters that a JSON Schema does not name are left out; else they are a fault. Default: true. */
  readonly pruneInput?: boolean;
  /** Whether `"5"` is read as 5 where a JSON Schema says number, and `"true"` as true where it says boolean. Default: false. */
  readonly coerceInput?: boolean;
  /** The engine for patterns of a JSON Schema. Use a linear-time one for schemas that are not yours. Default: the platform's own. */
  readonly patterns?: PatternEngine;
}

/** Makes a tool, or throws a `config` error that names the fix where the definition cannot work. */
export const tool = <const Schema extends InputSchema = NoParameters>(
  definition: ToolDefinition<Schema>,
): Tool => {
  checkOptions('tool()', definition, rules, ['name', 'description', 'run']);
  const { name, description, input, run, approve, ...rest } = definition;
  const { pruneInput, coerceInput, patterns, ...policy } = rest;
  const owner = `tool '${name}': 'input'`;
  const { jsonSchema, warnings, validation$ } = createValidator(
    input ?? noParameters,
    owner,
    defined({ pruneInput, coerceInput, patterns }),
  );
  const { accepts = [] } = policy;
  checkParameters(owner, jsonSchema, accepts);
  return {
    exclusive: false,
    ...policy,
    ...(approve !== undefined && {
      approve:
        typeof approve === 'boolean'
          ? approve
          : // What the validator has passed is of the schema's type, which no guard can say.
            // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
            (request) => approve({ ...request, value: request.value as Infer<Schema> }),
    }),
    ...{ name, description },
    hidden: accepts,
    inputSchema: accepts.length > 0 ? withoutParameters(jsonSchema, accepts) : jsonSchema,
    ...(warnings.length > 0 && { warnings }),
    validation$: (value, _values, hidden) => validation$(withoutKeys(value, accepts), hidden),
    run$: (value, context) =>
      // What the validator has passed is of the schema's type, which no guard can say.
      // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
      made$(() => emissions(run(value as Infer<Schema>, context), context.demand)),
  };
};

/** Any Unicode but what breaks lines or turns text around. Names that a provider refuses are mapped on the wire. */
const toolName = /^[^\p{Cc}\p{Cs}\u2028-\u202e\u2066-\u2069]{1,256}$/u;

const rules: Readonly<Record<keyof ToolDefinition<unknown>, Rule>> = {
  name: [
    (value) => typeof value === 'string' && value.trim() === value && toolName.test(value),
    '1 to 256 characters, no control characters or outer spaces',
  ],
  description: [
    (value) => typeof value === 'string' && value.trim() !== '',
    'a string for the model',
  ],
  input: [(value) => value !== null, 'a schema'],
  run: isFunction,
  exclusive: isFlag,
  approve: [
    (value) => typeof value === 'boolean' || typeof value === 'function',
    'true, false or a function that decides',
  ],
  timeoutMs: isDelay,
  retry: [
    (value) => {
      checkOptions("'retry'", value, retryRules);
      return true;
    },
    'an object of options',
  ],
  accepts: listOf('names of parameters'),
  dedupe: isFlag,
  idempotent: isFlag,
  pruneInput: isFlag,
  coerceInput: isFlag,
  patterns: isFunction,
};

const retryRules: Readonly<Record<keyof ToolRetry, Rule>> = {
  attempts: wholeNumber(1),
  backoffMs: isDelay,
  growth: oneOf('linear', 'exponential'),
};

const noParameters = { type: 'object', properties: {} };
