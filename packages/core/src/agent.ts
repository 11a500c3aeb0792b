import {
  concatMap,
  defer,
  filter,
  firstValueFrom,
  map,
  type Observable,
  type ObservableInput,
  type OperatorFunction,
  takeLast,
} from 'rxjs';
import { call$ } from './call.js';
import type { CallInfo } from './call-info.js';
import {
  type CallDefaults,
  type CallOptions,
  checkCallOptions,
  checkDefaults,
  isSchema,
  withDefaults,
} from './call-options.js';
import { misuse } from './errors.js';
import type { AgentEvent, EventOf } from './events.js';
import { createHotEvents } from './hot-events.js';
import type { Input } from './input.js';
import type { Interceptor } from './interceptor.js';
import { type Journal, noJournal } from './journal.js';
import { isRecord } from './json.js';
import { inProcessMemory, type Memory, type MemoryFactory } from './memory.js';
import type { Model } from './model.js';
import {
  checkOptions,
  having,
  isFunction,
  isModel,
  isObject,
  isText,
  listOf,
  type Rule,
} from './options.js';
import { ofSession } from './of-session.js';
import type { Reply } from './reply.js';
import { createValidator, type Infer, type InputSchema, type Validator } from './schema.js';
import { createSeats, type Seat } from './seats.js';
import { toAsyncIterable } from './to-async-iterable.js';
import type { Tool } from './tool.js';
import { createToolkit } from './toolkit.js';

/** What an agent is made of. */
export interface AgentOptions<Output extends InputSchema | undefined = InputSchema | undefined> {
  /** What events and other agents call it. Default: `agent`. */
  readonly name?: string;
  readonly model: Model;
  /** The system prompt, or a function that writes it for a call. */
  readonly instructions?: string | ((call: CallInfo) => string);
  readonly tools?: readonly Tool[];
  /** What every answer must be: `reply.output` is of it. A call may say otherwise. */
  readonly output?: Output;
  /** Gives the memory of a session. Default: one in this process. */
  readonly memory?: MemoryFactory;
  /** Operators on the events of every call: `on(...)` and `onCall(...)`. */
  readonly interceptors?: readonly Interceptor[];
  /** Runs the steps of every call. Default: it remembers none. */
  readonly journal?: Journal;
  /** What a call may say otherwise. */
  readonly defaults?: CallDefaults;
}

/** What the reply of a call holds: of the call's own schema where it has one, else of its agent's. */
export type OutputOf<Own extends InputSchema | undefined, Default> = Own extends InputSchema
  ? Infer<Own>
  : Default;

/** The four ways to call: two views of one loop, each with an Observable and a pulled form. */
export interface Callable<Output = unknown> {
  /** Emits one reply and completes, or errors with a `MillraceError`. Cold: each subscription is a call. */
  call$<const Own extends InputSchema | undefined = undefined>(
    input: Input,
    options?: CallOptions<Own>,
  ): Observable<Reply<OutputOf<Own, Output>>>;
  /** Emits every event of the call and of sub-agents, `postCall` last. Cold: each subscription is a call. */
  stream$(input: Input, options?: CallOptions): Observable<AgentEvent>;
  /** The Promise form of `call$`: it starts at once. */
  call<const Own extends InputSchema | undefined = undefined>(
    input: Input,
    options?: CallOptions<Own>,
  ): Promise<Reply<OutputOf<Own, Output>>>;
  /** The AsyncIterable form of `stream$`: it starts at the first `next()`, pauses the model while events wait, and ends the call on `break`. */
  stream(input: Input, options?: Omit<CallOptions, 'demand'>): AsyncIterable<AgentEvent>;
  /** An operator that calls with each value and emits the replies. `flatten` says what a new value does to a running call; default: it waits (`concatMap`). */
  asOperator<const Own extends InputSchema | undefined = undefined>(
    options?: OperatorOptions<Own>,
  ): OperatorFunction<Input, Reply<OutputOf<Own, Output>>>;
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

/** An immutable definition: nothing of a call lives in it. A call without a session remembers nothing. */
export interface Agent<Output = unknown> extends Callable<Output> {
  readonly name: string;
  /** The events of all its calls, and of the calls below them. Hot; never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
  /** A handle on the conversation of this id: cheap, and the same conversation for the same id. */
  session(id: string): Session<Output>;
}

/** One conversation: its calls follow one another, and remember. A second call while one runs errors with `busy`. */
export interface Session<Output = unknown> extends Callable<Output> {
  readonly id: string;
  readonly memory: Memory;
  /** The events of its calls, and of the calls below them. Hot; never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
  /**
   * Ends the running call politely, with reason `interrupted`: with this message as the reply, else with
   * the text so far. False when nothing runs, or not the call of that id.
   */
  interrupt(message?: string, callId?: string): boolean;
}

/** Defines an agent, or throws a `config` error that names the fix. */
export const createAgent = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
): Agent<OutputOf<Output, undefined>> => {
  checkOptions('createAgent()', options, rules, ['model']);
  checkDefaults("createAgent(), 'defaults'", options.defaults ?? {});
  const { name = 'agent', defaults = {}, journal = noJournal, model: ownModel } = options;
  const interceptors = [...(options.interceptors ?? [])];
  const { instructions, memory: memoryOf = inProcessMemory(), tools = [] } = options;
  const hot = createHotEvents();
  const seats = createSeats();
  const toolkit = createToolkit(defaults.tools ?? tools);
  const ownOutput = outputOf(options.output, 'createAgent()');
  interceptors.forEach(refuseNoInterceptor);

  const callable = (session?: {
    readonly seat: Seat;
    readonly memory: Memory;
  }): Callable<OutputOf<Output, undefined>> =>
    toCallable((input, given) => {
      const { tools: _tools, output, model = ownModel, ...rest } = withDefaults(defaults, given);
      return call$({
        agentName: name,
        model,
        toolkit: given.tools === undefined ? toolkit : createToolkit(given.tools),
        output: outputOf(output, 'The call') ?? ownOutput,
        instructions,
        interceptors,
        journal,
        options: rest,
        listener: hot.next,
        input,
        session,
      });
    });

  return {
    ...callable(),
    name,
    events$: hot.events$,
    session: (id) => {
      if (typeof id !== 'string' || id === '') throw misuse('session() needs the id of a session.');
      const seat = seats.seatOf(id);
      const memory = memoryOf(id);
      return {
        ...callable({ seat, memory }),
        id,
        memory,
        events$: hot.events$.pipe(ofSession(id)),
        interrupt: (message, callId) => seats.interrupt(id, message, callId),
      };
    },
  };
};

const toCallable = <Output>(
  begin$: (input: Input, options: CallOptions) => Observable<AgentEvent>,
): Callable<Output> => {
  const stream$: Callable['stream$'] = (input, options = {}) => {
    checkCallOptions('The call', options);
    return begin$(input, options);
  };
  const reply$: Callable<Output>['call$'] = <Own extends InputSchema | undefined>(
    input: Input,
    options?: CallOptions<Own>,
  ) => stream$(input, options).pipe(lastReply<OutputOf<Own, Output>>());
  return {
    stream$,
    call$: reply$,
    call: (input, options) => firstValueFrom(defer(() => reply$(input, options))),
    stream: (input, options) => {
      checkCallOptions('The call', options ?? {});
      return toAsyncIterable((demand) => stream$(input, { ...options, demand }));
    },
    asOperator: ({ flatten = inOrder, ...options } = {}) =>
      flatten((input: Input) => reply$(input, options)),
  };
};

const inOrder: Flatten = (project) => concatMap(project);

/** The calls of sub-agents end before the one that they are in. */
const lastReply =
  <Output>(): OperatorFunction<AgentEvent, Reply<Output>> =>
  (event$) =>
    event$.pipe(
      // The loop has validated the output; this tells the compiler of what.
      filter(
        (event): event is EventOf<'postCall'> & { readonly reply: Reply<Output> } =>
          event.type === 'postCall',
      ),
      takeLast(1),
      map(({ reply }) => reply),
    );

/** Schemas that were understood before: a call that is made again brings the same one. */
const outputs = new WeakMap<object, Validator>();

const outputOf = (schema: InputSchema | undefined, owner: string): Validator | undefined => {
  if (schema === undefined) return undefined;
  const validator = outputs.get(schema) ?? createValidator(schema, `${owner}: 'output'`);
  outputs.set(schema, validator);
  return validator;
};

const rules: Readonly<Record<keyof AgentOptions, Rule>> = {
  name: isText,
  model: isModel,
  instructions: [
    (value) => typeof value === 'string' || typeof value === 'function',
    'a text, or a function that writes one',
  ],
  tools: listOf('tools'),
  output: isSchema,
  memory: isFunction,
  interceptors: listOf('interceptors'),
  journal: having('step$', 'a Journal'),
  defaults: isObject,
};

const refuseNoInterceptor = (interceptor: unknown): void => {
  if (isRecord(interceptor) && typeof interceptor['open'] === 'function') return;
  throw misuse(
    "createAgent(): 'interceptors' takes what on(type, operator) or onCall(type, build) returns.",
  );
};
