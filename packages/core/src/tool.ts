import {
  checkOptions,
  isDelay,
  isFlag,
  isFunction,
  oneOf,
  type Rule,
  wholeNumber,
} from './options.js';
import { made$ } from './contained.js';
import { type Infer, type InputSchema, noParameters, validatorOf } from './schema.js';
import { emissions } from './tools/emissions.js';
import type { Approver, Tool, ToolContext, ToolPolicy, ToolRetry } from './tools/types.js';

/** The schema of a tool that declares no input. */
export type NoParameters = typeof noParameters;

/** What `tool()` makes a tool of. */
export interface ToolDefinition<Schema> extends Omit<ToolPolicy, 'approve' | 'accepts'> {
  /** What the model calls it: up to 256 characters of any script. A name that a provider refuses is mapped on the wire. */
  readonly name: string;
  /** Tells the model what it is for, and when to use it. */
  readonly description: string;
  /** The parameters: a Standard Schema, such as zod's, or `jsonSchema(…)` of `@millrace/core/schema`. Default: none. */
  readonly input?: Schema;
  /** Whether a run may start: yes, no, or a function that decides, with the validated input. It may change the input. Default: yes. */
  readonly approve?: boolean | Approver<Infer<Schema>>;
  /** Does the work. Returns a value, a Promise, a generator, an AsyncIterable or an Observable; values of the latter three are progress. The output is what a generator returns, else all emitted strings joined, else the last value. Errors are reported to the model. */
  readonly run: (input: Infer<Schema>, context: ToolContext) => unknown;
}

/** Makes a tool, or throws a `config` error that names the fix where the definition cannot work. */
export const tool = <const Schema extends InputSchema = NoParameters>(
  definition: ToolDefinition<Schema>,
): Tool => {
  checkOptions('tool()', definition, rules, ['name', 'description', 'run']);
  const { name, description, input = noParameters, run, approve, ...policy } = definition;
  const owner = `tool '${name}': 'input'`;
  const { jsonSchema, warnings = [], validation$ } = validatorOf(input, owner);
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
    inputSchema: jsonSchema,
    ...(warnings.length > 0 && { warnings: warnings.map((it) => `${owner}: ${it}`) }),
    validation$: (value, _values, hidden) => validation$(value, hidden),
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
  dedupe: isFlag,
  idempotent: isFlag,
};

const retryRules: Readonly<Record<keyof ToolRetry, Rule>> = {
  attempts: wholeNumber(1),
  backoffMs: isDelay,
  growth: oneOf('linear', 'exponential'),
};
