import { andThen, continued$, type Eventual, deferWork } from '../flow/eventual.js';
import type { Observable, ObservableInput } from 'rxjs';
import { concat, EMPTY, from, isObservable, map, mergeMap, noop, of, defer } from 'rxjs';
import {
  checkOptions,
  isDelay,
  isFlag,
  isFunction,
  oneOf,
  type Rule,
  wholeNumber,
} from '../values/options.js';
import { defined, isRecord } from '../values/json.js';
import { contained } from '../flow/contained.js';
import { validatedWithoutNulls$ } from './without-nulls.js';
import type { Demand } from '../flow/demand.js';
import { pulls } from '../flow/from-pull.js';
import {
  type Given,
  type Infer,
  type InputSchema,
  noParameters,
  type OutputSchema,
  validatorOf,
} from '../values/schema.js';
import { isOutput, type ToolEmission, type ToolOutput } from '../values/tool-output.js';
import type { ToolRun } from '../values/reply.js';
import { type ContextKey, isContextKey, noValue } from './context-key.js';
import { type ResultOf, resultsOf, type ToolReturn, type ToOutput } from './tool-results.js';
import type { CallOfTool, Tool, ToolContext, ToolPolicy, ToolRetry } from './types.js';

/** The schema of a tool that declares no input. */
export type NoParameters = typeof noParameters;

export interface ToolDefinition<
  Schema,
  Name extends string = string,
  Output = OutputSchema,
  Result = unknown,
> extends ToolPolicy {
  /** The name for the model: up to 256 characters of any script. Names a provider rejects are mapped on the wire. */
  readonly name: Name;
  /** Describes to the model what the tool does and when to use it. */
  readonly description: string;
  /** The parameters: a Standard Schema, such as zod's, or `jsonSchema(…)` of `millrace/schema`. Default: none. */
  readonly input?: Schema | undefined;
  /**
   * The schema of what `run` returns, of any type. The output is the valid value, as the schema transforms it: without unknown keys, for
   * example. Another value is an error that the model reads, without the values; also a later result of a client. Default: any value is an output.
   */
  readonly output?: Output | undefined;
  /** The context keys that `run` gets. A call in which one has no value errors when it starts, not in its middle. Default: none. */
  readonly requires?: readonly ContextKey<unknown>[] | undefined;
  /**
   * Runs the tool. Returns a value, a Promise, a generator, an AsyncIterable or an Observable; the emitted values of the
   * latter three are progress. The output is the return value of a generator, otherwise the joined strings, otherwise the last value. Errors are reported to the model.
   */
  // eslint-disable-next-line rxjs-x/finnish -- it may return an Observable, or anything else
  readonly run: (input: Infer<Schema>, context: ToolContext) => ToolReturn<Result>;
}

/**
 * Creates a tool. Throws a `config` error that names the fix if the definition is invalid.
 *
 * @example
 * ```ts
 * const weather = tool({
 *   name: 'weather', description: 'Returns the weather.', input: z.object({ city: z.string() }),
 *   run: ({ city }) => `Snow in ${city}.`, // or a Promise, an Observable, an AsyncIterable
 * });
 * ```
 */
export const tool = <
  const Schema extends InputSchema = NoParameters,
  const Name extends string = string,
  const Output extends OutputSchema = OutputSchema,
  const Result extends ResultOf<Given<Output>> = ResultOf<Given<Output>>,
>(
  definition: ToolDefinition<Schema, Name, Output, Result>,
): Tool<Infer<Schema>, ToolRun<Name, Given<Schema>>> => {
  checkOptions('tool()', definition, rules, ['name', 'description', 'run']);
  const {
    name,
    description,
    input = noParameters,
    requires = [],
    output,
    run,
    ...policy
  } = definition;
  const owner = `tool '${name}': 'input'`;
  const validator = validatorOf(input, owner);
  const { jsonSchema } = validator;
  const { toOutput$, result$, outputSchema, warnings: ofResults = [] } = resultsOf(name, output);
  const warnings = [...(validator.warnings ?? []).map((it) => `${owner}: ${it}`), ...ofResults];
  return {
    exclusive: false,
    ...defined(policy),
    ...{ name, description },
    inputSchema: jsonSchema,
    ...(outputSchema && { outputSchema }),
    ...(result$ && { result$ }),
    ...(warnings.length > 0 && { warnings }),
    ...(requires.length > 0 && { assertReady: withValues(name, requires) }),
    validation$: (value, _values, hidden) => validatedWithoutNulls$(validator, value, hidden),
    run$: (value, context) =>
      deferWork(() => {
        // The validator guarantees the schema's type; no type guard can express that.
        // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
        const returned = run(value as Infer<Schema>, context);
        return emissions(returned, context.demand, toOutput$);
      }),
  };
};

/** Checks that the keys of a tool have values in a call. */
export const withValues =
  (name: string, keys: readonly ContextKey<unknown>[]) =>
  ({ values }: CallOfTool): void => {
    const missing = keys.find((key) => key.from(values) === undefined);
    if (missing !== undefined) throw noValue(missing, `The tool '${name}': `);
  };

/** Any Unicode except line breaks, control and bidirectional characters. */
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
  output: [(value) => value !== null, 'a schema'],
  requires: [
    (value) => Array.isArray(value) && value.every(isContextKey),
    'a list of context keys',
  ],
  run: isFunction,
  exclusive: isFlag,
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
  callsAgents: isFlag,
  vendorOptions: [
    (value) => isRecord(value) && Object.values(value).every(isRecord),
    'an object of fields by vendor, such as { Anthropic: { defer_loading: true } }',
  ],
};

const retryRules: Readonly<Record<keyof ToolRetry, Rule>> = {
  attempts: wholeNumber(1),
  backoffMs: isDelay,
  growth: oneOf('linear', 'exponential'),
};

/** Converts the return value of a tool: a value, a Promise, a generator, an AsyncIterable or an Observable. */
export const emissions = (
  returned: unknown,
  demand: Demand,
  toOutput$: ToOutput,
): Eventual<ToolEmission> => {
  if (isObservableLike(returned)) {
    const value$ = from(returned).pipe(contained());
    return readEmissions(value$.pipe(map((value) => ({ done: false, value }))), toOutput$);
  }
  if (isAsyncIterable(returned))
    return readEmissions(
      pulls(() => returned, demand),
      toOutput$,
    );
  if (isGenerator(returned)) {
    return readEmissions(
      pulls(() => asAsync(returned), demand),
      toOutput$,
    );
  }
  if (isPromiseLike(returned)) {
    // Its call may have been left while it ran: then no one waits for it.
    if (returned instanceof Promise) returned.catch(noop);
    return continued$(returned, (settled) => emissions(settled, demand, toOutput$));
  }
  return emitted(toOutput$(returned));
};

const emitted = (output: Eventual<ToolOutput>): Eventual<ToolEmission> =>
  andThen(output, asEmission);

const asEmission = (output: ToolOutput): ToolEmission => ({ type: 'output', output });

const has = (value: unknown, key: PropertyKey): boolean =>
  typeof value === 'object' && value !== null && typeof Reflect.get(value, key) === 'function';

/** Recognizes Observables of other copies of RxJS and of other libraries by their common symbol. */
const isObservableLike = (value: unknown): value is ObservableInput<unknown> =>
  isObservable(value) || has(value, observableSymbol);

const observableSymbol: PropertyKey =
  'observable' in Symbol && typeof Symbol.observable === 'symbol'
    ? Symbol.observable
    : '@@observable';

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown, unknown> =>
  has(value, Symbol.asyncIterator);

const isGenerator = (value: unknown): value is Generator<unknown, unknown> =>
  has(value, Symbol.iterator) && has(value, 'next');

const asAsync = (generator: Generator<unknown, unknown>): AsyncIterable<unknown, unknown> => ({
  [Symbol.asyncIterator]: () => ({
    next: () => Promise.resolve(generator.next()),
    return: () => Promise.resolve(generator.return(undefined)),
  }),
});

const isPromiseLike = (value: unknown): value is PromiseLike<unknown> => has(value, 'then');

/** Emits what a function returns, promises or emits. A verdict may have any other fields. */
export const given$ = (given: unknown, isVerdict: (given: unknown) => boolean) =>
  !isVerdict(given) && isObservableInput(given) ? from(given) : of(given);

const isObservableInput = (value: unknown): value is ObservableInput<unknown> =>
  isObservableLike(value) ||
  isAsyncIterable(value) ||
  isPromiseLike(value) ||
  has(value, Symbol.iterator);

/** Reads an iterator of progress; the output is the return value, a final `ToolOutput`, joined strings or the last value. */
const readEmissions = (
  result$: Observable<IteratorResult<unknown, unknown>>,
  toOutput$: ToOutput,
): Observable<ToolEmission> =>
  defer(() => {
    const texts: string[] = [];
    let last: unknown;
    let returned: unknown;
    return concat(
      result$.pipe(
        mergeMap(({ done, value }) => {
          if (done === true) {
            returned = value;
            return EMPTY;
          }
          last = value;
          if (isOutput(value)) return EMPTY;
          if (typeof value === 'string') texts.push(value);
          return of<ToolEmission>({ type: 'progress', value });
        }),
      ),
      deferWork(() => emitted(toOutput$(resultOf(returned, texts, last)))),
    );
  });

const resultOf = (returned: unknown, texts: readonly string[], last: unknown): unknown => {
  if (returned !== undefined) return returned;
  return texts.length > 0 && !isOutput(last) ? texts.join('') : last;
};
