import type { Observable, ObservableInput, OperatorFunction } from 'rxjs';
import {
  AsyncSubject,
  catchError,
  concatMap,
  defer,
  finalize,
  lastValueFrom,
  of,
  tap,
  throwError,
} from 'rxjs';
import { type CallOptions, checkCallOptions } from './call-options.js';
import { MillraceError, misuse, toMillraceError } from '../values/errors.js';
import type { AgentEvent } from '../events.js';
import type { Demand } from '../flow/demand.js';
import type { Input } from '../seams/input.js';
import { type Flatten, flattened } from '../flow/async-context.js';
import { defined } from '../values/json.js';
import { isFunction, type Rule } from '../values/options.js';
import type { Reply, AnyRun } from '../values/reply.js';
import type { Infer, InputSchema } from '../values/schema.js';
import { pullFrom } from '../flow/pull-from.js';

/** The part of a call that its caller sees: its events, or only its reply. */
export type View<Seen> = (call: {
  readonly events$: Observable<AgentEvent>;
  readonly reply$: Observable<Reply>;
}) => Observable<Seen>;

const eventsOf: View<AgentEvent> = ({ events$ }) => events$;

/** Only the reply: events without other observers are not created. */
const replyOf: View<Reply> = ({ reply$ }) => reply$;

/** The type of `reply.output`: by the schema of the call, or else of its agent. */
export type OutputOf<Own extends InputSchema | undefined, Default> = Own extends InputSchema
  ? Infer<Own>
  : Default;

/** The four ways to call: reply or events, pushed or pulled. `Extra` are additional options. */
export interface Callable<out Output = unknown, Extra = unknown, out Run extends AnyRun = AnyRun> {
  /** Emits one reply and completes, or errors with a `MillraceError`. Cold: each subscription is a call. */
  call$<const Own extends InputSchema | undefined = undefined>(
    input: Input,
    options?: CallOptions<Own> & Extra,
  ): Observable<Reply<OutputOf<Own, Output>, Run>>;
  /** Emits every event of the call and of sub-agents, `postCall` last. Cold: each subscription is a call. */
  stream$(input: Input, options?: CallOptions & Extra): Observable<AgentEvent<Run>>;
  /** The Promise form of `call$`. Starts immediately. */
  call<const Own extends InputSchema | undefined = undefined>(
    input: Input,
    options?: CallOptions<Own> & Extra,
  ): Promise<Reply<OutputOf<Own, Output>, Run>>;
  /** The AsyncIterable form of `stream$`. Starts at the first `next()`, applies backpressure, unsubscribes on `break`. */
  stream<const Own extends InputSchema | undefined = undefined>(
    input: Input,
    options?: Omit<CallOptions<Own>, 'demand'> & Extra,
  ): EventStream<OutputOf<Own, Output>, Run>;
  /**
   * An operator that makes a call for each value and emits the replies. By default, a new value waits for the running
   * call (`concatMap`), and a failed call ends the stream.
   */
  asOperator<const Own extends InputSchema | undefined = undefined, Instead = never>(
    options?: OperatorOptions<Own, Instead> & Extra,
  ): OperatorFunction<Input, Reply<OutputOf<Own, Output>, Run> | Instead>;
  // The last signature is the one that types infer from.
  asOperator(): OperatorFunction<Input, Reply<Output, Run>>;
}

/** The events of a call, pulled. Each iteration is a call. */
export interface EventStream<
  out Output = unknown,
  out Run extends AnyRun = AnyRun,
> extends AsyncIterable<AgentEvent<Run>> {
  /** Returns the reply after the last event: `const reply = yield* agent.stream('?')`. */
  [Symbol.asyncIterator](): AsyncIterator<AgentEvent<Run>, Reply<Output, Run>, undefined>;
  /**
   * The reply of the latest iteration, when it ends. Rejects with its error, with `aborted` if the loop was left before its end, and with
   * `config` before the first iteration: use `call()` if you need no events.
   */
  readonly reply: Promise<Reply<Output, Run>>;
}

export interface OperatorOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
  Instead = unknown,
> extends CallOptions<Output> {
  /** A flattening operator of RxJS, such as `switchMap`: how a new value affects a running call. */
  readonly flatten?: Flatten | undefined;
  /** Returns what to emit instead of the reply of a failed call; `EMPTY` skips it. Default: the stream errors. */
  // eslint-disable-next-line rxjs-x/finnish -- as in other libraries
  readonly onError?: ((error: MillraceError, input: Input) => ObservableInput<Instead>) | undefined;
}

export const toCallable = <Output, Run extends AnyRun = AnyRun>(
  begin$: <Seen>(input: Input, options: CallOptions, view: View<Seen>) => Observable<Seen>,
  extra?: Readonly<Record<string, Rule>>,
): Callable<Output, unknown, Run> => {
  const see$ = <Seen>(
    view: View<Seen>,
    input: Input,
    options: CallOptions = {},
  ): Observable<Seen> => {
    checkCallOptions('The call', options, extra);
    return begin$(input, options, view);
  };
  const stream$: Callable<Output, unknown, Run>['stream$'] = (input, options) =>
    ofTools<Run>(see$(eventsOf, input, options));
  const reply$: Callable<Output, unknown, Run>['call$'] = <Own extends InputSchema | undefined>(
    input: Input,
    options?: CallOptions<Own>,
  ) => ofType<OutputOf<Own, Output>, Run>(see$(replyOf, input, options));
  return {
    stream$,
    call$: reply$,
    // Waits for completion: a call is recorded after its reply.
    call: (input, options) => lastValueFrom(defer(() => reply$(input, options))),
    stream: <Own extends InputSchema | undefined>(
      input: Input,
      options?: Omit<CallOptions<Own>, 'demand'>,
    ) => {
      checkCallOptions('The call', options ?? {}, extra);
      const events = eventStream((demand) => see$(eventsOf, input, { ...options, demand }));
      // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- As in `ofType`.
      return events as EventStream<OutputOf<Own, Output>, Run>;
    },
    asOperator: <Own extends InputSchema | undefined, Instead = never>(
      given: OperatorOptions<Own, Instead> = {},
    ) => {
      checkCallOptions('asOperator()', given, { ...extra, ...operatorRules });
      const { flatten = inOrder, onError, ...own } = given;
      const operator = (options: typeof own) =>
        flattened(flatten, (input: Input) => {
          const replied$ = reply$(input, options);
          return onError === undefined
            ? replied$
            : replied$.pipe(catchError((error: unknown) => onError(toMillraceError(error), input)));
        });
      return asStep(operator(own), (input, options) =>
        of(input).pipe(operator(laidOver(own, options))),
      );
    },
  };
};

const eventStream = (begin$: (demand: Demand) => Observable<AgentEvent>) => {
  let latest$: Observable<Reply> = throwError(() => notIterated());
  return {
    [Symbol.asyncIterator]: () => {
      const ended$ = new AsyncSubject<Reply>();
      latest$ = ended$;
      let reply: Reply | undefined;
      const open$ = (demand: Demand): Observable<AgentEvent> =>
        defer(() => begin$(demand)).pipe(
          tap({
            // That of the call itself is the last one.
            next: (event) => event.type === 'postCall' && ended$.next((reply = event.reply)),
            error: (error: unknown) => ended$.error(toMillraceError(error)),
            complete: () => ended$.complete(),
          }),
          // Nothing if it has ended.
          finalize(() => ended$.error(left())),
        );
      return pullFrom(open$, undefined, () => reply);
    },
    get reply() {
      return lastValueFrom(latest$);
    },
  };
};

const left = (): MillraceError =>
  new MillraceError('aborted', 'The loop over the stream ended before its call had.');

const notIterated = (): MillraceError =>
  misuse("'reply' is that of a loop over the stream. Without one, use call().");

/** Merges the options of a step with those of its runner; layers add up. */
const laidOver = (own: CallOptions, { use, ...options }: CallOptions): CallOptions => ({
  ...own,
  ...defined(options),
  ...(use && { use: [...(own.use ?? []), ...use] }),
});

const operatorRules = { flatten: isFunction, onError: isFunction };

const inOrder: Flatten = (project) => concatMap(project);

/** The schema guarantees the type; no type guard can express that. */
const ofType = <Output, Run extends AnyRun>(
  reply$: Observable<Reply>,
): Observable<Reply<Output, Run>> =>
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  reply$ as Observable<Reply<Output, Run>>;

/** As `ofType`, for events. */
const ofTools = <Run extends AnyRun>(
  events$: Observable<AgentEvent>,
): Observable<AgentEvent<Run>> =>
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  events$ as Observable<AgentEvent<Run>>;

/** Runs a step with one input. The options are for its calls. */
export type StepRun<Out = unknown> = (input: Input, options: CallOptions) => Observable<Out>;

/** The step of an operator: RxJS operators cannot take options. */
const runs = new WeakMap<object, StepRun>();

/**
 * Creates a step for `sequential`, `parallel`, `race`, `route` and `asAgent` from a function. Pass the options to its
 * calls, `agent.call$(input, options)`, so they belong to the parent; use `silent(options)` for calls that do not give the answer. The next input waits.
 */
export const createStep = <Out>(run: StepRun<Out>): OperatorFunction<Input, Out> => {
  if (typeof run !== 'function') {
    throw misuse('createStep() needs a function (input, options) => Observable.');
  }
  return asStep(
    flattened(inOrder, (input) => run(input, {})),
    run,
  );
};

const asStep = <Out>(
  operator: OperatorFunction<Input, Out>,
  run: StepRun<Out>,
): OperatorFunction<Input, Out> => {
  runs.set(operator, run);
  return operator;
};

export const runOf = <Out>(operator: OperatorFunction<Input, Out>): StepRun<Out> => {
  // A WeakMap cannot express that the step has the type of its operator.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  const run = runs.get(operator) as StepRun<Out> | undefined;
  return run ?? ((input) => of(input).pipe(operator));
};
