import type { Observable, ObservableInput, OperatorFunction } from 'rxjs';
import { concatMap, defer, lastValueFrom, of } from 'rxjs';
import { type CallOptions, checkCallOptions } from './call-options.js';
import type { Demand } from '../flow/demand.js';
import { misuse } from '../values/errors.js';
import type { AgentEvent } from '../events.js';
import type { Input } from '../seams/input.js';
import { defined, type Rule } from '../values/options.js';
import type { Reply } from '../values/reply.js';
import type { Infer, InputSchema } from '../values/schema.js';
import { pullFrom } from '../flow/pull-from.js';

/** What the caller sees of a call. */
export type View<Seen> = (call: {
  readonly events$: Observable<AgentEvent>;
  readonly reply$: Observable<Reply>;
}) => Observable<Seen>;

const eventsOf: View<AgentEvent> = ({ events$ }) => events$;

/** Its reply alone: events that nobody else hears are then not made. */
const replyOf: View<Reply> = ({ reply$ }) => reply$;

/** What the reply of a call holds: of the call's own schema where it has one, else of its agent's. */
export type OutputOf<Own extends InputSchema | undefined, Default> = Own extends InputSchema
  ? Infer<Own>
  : Default;

/** The four ways to call: two views of one loop, each with an Observable and a pulled form. `Extra` are options beside those of a call. */
export interface Callable<out Output = unknown, Extra = unknown> {
  /** Emits one reply and completes, or errors with a `MillraceError`. Cold: each subscription is a call. */
  call$<const Own extends InputSchema | undefined = undefined>(
    input: Input,
    options?: CallOptions<Own> & Extra,
  ): Observable<Reply<OutputOf<Own, Output>>>;
  /** Emits every event of the call and of sub-agents, `postCall` last. Cold: each subscription is a call. */
  stream$(input: Input, options?: CallOptions & Extra): Observable<AgentEvent>;
  /** The Promise form of `call$`: it starts at once. */
  call<const Own extends InputSchema | undefined = undefined>(
    input: Input,
    options?: CallOptions<Own> & Extra,
  ): Promise<Reply<OutputOf<Own, Output>>>;
  /** The AsyncIterable form of `stream$`: it starts at the first `next()`, pauses the model while events wait, and ends the call on `break`. */
  stream(input: Input, options?: Omit<CallOptions, 'demand'> & Extra): AsyncIterable<AgentEvent>;
  /** An operator that calls with each value and emits the replies. `flatten` says what a new value does to a running call; default: it waits (`concatMap`). */
  asOperator<const Own extends InputSchema | undefined = undefined>(
    options?: OperatorOptions<Own> & Extra,
  ): OperatorFunction<Input, Reply<OutputOf<Own, Output>>>;
  // The last signature is the one that types infer from.
  asOperator(): OperatorFunction<Input, Reply<Output>>;
}

/** How an agent works as an operator. */
export interface OperatorOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
> extends CallOptions<Output> {
  /** One of RxJS's flattening operators, such as `switchMap`. */
  readonly flatten?: Flatten;
}

/** A flattening operator of RxJS. */
export type Flatten = <In, Out>(
  project: (value: In) => ObservableInput<Out>,
) => OperatorFunction<In, Out>;

export const toCallable = <Output>(
  begin$: <Seen>(input: Input, options: CallOptions, view: View<Seen>) => Observable<Seen>,
  /** Rules for options beside those of a call. */
  extra?: Readonly<Record<string, Rule>>,
): Callable<Output> => {
  const see$ = <Seen>(
    view: View<Seen>,
    input: Input,
    options: CallOptions = {},
  ): Observable<Seen> => {
    checkCallOptions('The call', options, extra);
    return begin$(input, options, view);
  };
  const stream$: Callable['stream$'] = (input, options) => see$(eventsOf, input, options);
  const reply$: Callable<Output>['call$'] = <Own extends InputSchema | undefined>(
    input: Input,
    options?: CallOptions<Own>,
  ) => ofType<OutputOf<Own, Output>>(see$(replyOf, input, options));
  return {
    stream$,
    call$: reply$,
    // A call is over when it is written down, which is behind its reply.
    call: (input, options) => lastValueFrom(defer(() => reply$(input, options))),
    stream: (input, options) => {
      checkCallOptions('The call', options ?? {}, extra);
      return toAsyncIterable((demand) => stream$(input, { ...options, demand }));
    },
    asOperator: ({ flatten = inOrder, ...own } = {}) => {
      const operator = (options: typeof own) => flatten((input: Input) => reply$(input, options));
      return asStep(operator(own), (input, options) =>
        of(input).pipe(operator(laidOver(own, options))),
      );
    },
  };
};

/** Lays the options of who runs a step over its own; layers add up. */
const laidOver = (own: CallOptions, { use, ...options }: CallOptions): CallOptions => ({
  ...own,
  ...defined(options),
  ...(use && { use: [...(own.use ?? []), ...use] }),
});

const inOrder: Flatten = (project) => concatMap(project);

/** What a schema has read is of its type, which no guard can say. */
const ofType = <Output>(reply$: Observable<Reply>): Observable<Reply<Output>> =>
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  reply$ as Observable<Reply<Output>>;

/** Lets a `for await` pull from an Observable. Each iteration subscribes at its first `next()`; waiting values close the demand; `return()` unsubscribes immediately. */
const toAsyncIterable = <T>(open: (demand: Demand) => Observable<T>): AsyncIterable<T> => ({
  [Symbol.asyncIterator]: () => pullFrom(open),
});

/** Runs one input through a step. The options are for the calls that it makes: where they stand, and whose words theirs are. */
export type StepRun<Out = unknown> = (input: Input, options: CallOptions) => Observable<Out>;

/** What an operator does with one input and options: an operator of RxJS has no room for options. */
const runs = new WeakMap<object, StepRun>();

/**
 * Makes a step of a function of an input and options, for `sequential`, `parallel`, `race`, `route` and `asAgent`. Pass the options on, `agent.call$(input, options)`, so that the calls belong to the call above. For calls that do not give the answer, use `silent(options)`. The next input waits.
 */
export const createStep = <Out>(run: StepRun<Out>): OperatorFunction<Input, Out> => {
  if (typeof run !== 'function') {
    throw misuse('createStep() needs a function of an input and options.');
  }
  return asStep(
    concatMap((input) => run(input, {})),
    run,
  );
};

/** Lets an operator be run with options. */
const asStep = <Out>(
  operator: OperatorFunction<Input, Out>,
  run: StepRun<Out>,
): OperatorFunction<Input, Out> => {
  runs.set(operator, run);
  return operator;
};

export const runOf = <Out>(operator: OperatorFunction<Input, Out>): StepRun<Out> => {
  // It does what its operator does, which a WeakMap cannot say.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  const run = runs.get(operator) as StepRun<Out> | undefined;
  return run ?? ((input) => of(input).pipe(operator));
};
