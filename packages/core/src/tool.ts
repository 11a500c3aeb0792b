import {
  concatMap,
  defer,
  from,
  isObservable,
  map,
  type Observable,
  type ObservableInput,
  of,
  type SchedulerLike,
} from 'rxjs';
import { contained } from './contained.js';
import type { Demand } from './demand.js';
import { pulls } from './from-pull.js';
import { checkOptions, isFlag, isFunction, type Rule } from './options.js';
import {
  createValidator,
  type Infer,
  type InputSchema,
  type JsonSchema,
  type Validation,
} from './schema.js';
import { readEmissions, type ToolEmission, toOutput } from './tool-output.js';

/** What a call lends to one run of a tool. Pass it on as `parent` where the tool calls another agent. */
export interface ToolContext {
  readonly callId: string;
  readonly toolUseId: string;
  readonly sessionId?: string;
  /** The names of the agents, from the outermost to the one that uses the tool. */
  readonly agent: readonly string[];
  readonly iteration: number;
  /** Aborts when the run is cut or fails: nobody waits for it any more. */
  readonly signal: AbortSignal;
  /** While it is closed, nothing more is pulled from an AsyncIterable that the tool returns. */
  readonly demand: Demand;
  /** Every wait runs on it. */
  readonly scheduler: SchedulerLike;
  /** What the caller gave with the call. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** Something that a model may ask to run. `tool()` makes one. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  /** Runs while no other tool of its batch does. */
  readonly exclusive: boolean;
  /** Emits one verdict on what the model gave, and completes. */
  readonly validation$: (input: unknown) => Observable<Validation>;
  /** Runs on a valid input. Cold. An error becomes an observation for the model. */
  run$(input: unknown, context: ToolContext): Observable<ToolEmission>;
}

/** The schema of a tool that declares no input. */
export type NoParameters = Readonly<Record<'type', 'object'>>;

/** What `tool()` makes a tool of. */
export interface ToolDefinition<Schema> {
  /** What the model calls it: letters, digits, `_`, `-` and `.`, at most 64 of them. */
  readonly name: string;
  /** Tells the model what it is for, and when to use it. */
  readonly description: string;
  /** The parameters. Default: none. */
  readonly input?: Schema;
  /**
   * Does the work. It may return a value, a Promise, a generator, an AsyncIterable or an Observable;
   * what the latter three emit is progress, shown at once. The output is what a generator returns in the end, else all
   * strings that were emitted, joined, else the last value. What it throws is told to the model.
   */
  readonly run: (input: Infer<Schema>, context: ToolContext) => unknown;
  /** Runs while no other tool of its batch does. Default: false. */
  readonly exclusive?: boolean;
}

/** Makes a tool, or throws a `config` error that names the fix where the definition cannot work. */
export const tool = <const Schema extends InputSchema = NoParameters>(
  definition: ToolDefinition<Schema>,
): Tool => {
  checkOptions('tool()', definition, rules, ['name', 'description', 'run']);
  const { name, description, input, run, exclusive = false } = definition;
  const { jsonSchema, validation$ } = createValidator(
    input ?? noParameters,
    `tool '${name}': 'input'`,
  );
  return {
    name,
    description,
    inputSchema: jsonSchema,
    exclusive,
    validation$,
    run$: (value, context) =>
      // What the validator has passed is of the schema's type, which no guard can say.
      // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
      defer(() => emissions(run(value as Infer<Schema>, context), context.demand)),
  };
};

const rules: Readonly<Record<keyof ToolDefinition<unknown>, Rule>> = {
  name: [
    (value) => typeof value === 'string' && /^[\w.-]{1,64}$/.test(value),
    "1 to 64 letters, digits, '_', '-' or '.', so that a model can call it",
  ],
  description: [
    (value) => typeof value === 'string' && value.trim() !== '',
    'a text that tells a model what the tool is for',
  ],
  input: [(value) => value !== null, 'a schema'],
  run: isFunction,
  exclusive: isFlag,
};

const noParameters = { type: 'object', properties: {} };

const emissions = (returned: unknown, demand: Demand): Observable<ToolEmission> => {
  if (isObservableLike(returned)) {
    const value$ = from(returned).pipe(contained());
    return readEmissions(value$.pipe(map((value) => ({ done: false, value }))));
  }
  if (isAsyncIterable(returned)) return readEmissions(pulls(() => returned, demand));
  if (isGenerator(returned)) return readEmissions(pulls(() => asAsync(returned), demand));
  if (isPromiseLike(returned)) {
    return from(returned).pipe(concatMap((settled) => emissions(settled, demand)));
  }
  return of({ type: 'output', output: toOutput(returned) });
};

const has = (value: unknown, key: PropertyKey): boolean =>
  typeof value === 'object' && value !== null && typeof Reflect.get(value, key) === 'function';

/** An Observable of another copy of RxJS, or of another library, is told by the symbol that they share. */
const isObservableLike = (value: unknown): value is ObservableInput<unknown> =>
  isObservable(value) || has(value, observableSymbol);

const observableSymbol: PropertyKey =
  'observable' in Symbol && typeof Symbol.observable === 'symbol'
    ? Symbol.observable
    : '@@observable';

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown, unknown> =>
  has(value, Symbol.asyncIterator);

/** A list is a value; a generator is work to be done. */
const isGenerator = (value: unknown): value is Generator<unknown, unknown> =>
  has(value, Symbol.iterator) && has(value, 'next');

const asAsync = (generator: Generator<unknown, unknown>): AsyncIterable<unknown, unknown> => ({
  [Symbol.asyncIterator]: () => ({
    next: () => Promise.resolve(generator.next()),
    return: () => Promise.resolve(generator.return(undefined)),
  }),
});

const isPromiseLike = (value: unknown): value is PromiseLike<unknown> => has(value, 'then');
