import {
  type Agent,
  type Input,
  isMillraceError,
  MillraceError,
  type Reply,
  type ToolCallBlock,
  type Verdict,
} from 'millrace';
import { type Drainable, journal, type Journal, type CallStore } from 'millrace/journal';
import {
  checkOptions,
  isFunction,
  isObject,
  isRecord,
  isText,
  messageOf,
  oneOf,
  type Rule,
} from 'millrace/values';
import {
  handlers,
  object,
  type ObjectContext,
  type InvocationId,
  type ObjectOptions,
  type ObjectSharedContext,
  RestatePromise,
  TerminalError,
  type VirtualObjectDefinition,
} from '@restatedev/restate-sdk';
import {
  defer,
  firstValueFrom,
  fromEvent,
  merge,
  NEVER,
  type Observable,
  of,
  ReplaySubject,
  takeUntil,
} from 'rxjs';
import {
  type AgentStore,
  attempted$,
  type CallMessage,
  type OwnOptions,
  type PlainOptions,
} from './attempt.js';

/** The body of the handler `call`. */
export interface CallRequest {
  /** A string, a message, or results for a suspended call: `toolResults(…)` as JSON. */
  readonly input: Input;
  /** The id of the call; one that is recorded is resumed. Default: the id of the Restate invocation, or the key if calls have no session. */
  readonly callId?: string;
  readonly options?: PlainOptions;
}

/** The result of the handler `call`. */
export interface CallResult {
  readonly callId: string;
  readonly reason: Reply['reason'];
  readonly reply: Reply;
}

/** Whether a message was sent to the call. It may have no effect if the call is about to end. */
export interface SentResult {
  readonly status: 'sent' | 'notRunning';
}

/**
 * The handlers of the virtual object of an agent: `context.objectClient<AgentHandlers>({ name: 'support' }, 'user-42').call({ input })` in another
 * handler. Bodies and results are JSON; a bad body is a terminal error.
 */
export interface AgentHandlers {
  /** Runs a call. Calls of one key run one by one, in order. Errors of the call are terminal; those of the store are retried. */
  readonly call: (context: ObjectContext, request: CallRequest) => Promise<CallResult>;
  /** Ends the running call politely. A message becomes the text of its reply. */
  readonly interrupt: (
    context: ObjectSharedContext,
    request: { readonly callId: string; readonly message?: string },
  ) => Promise<SentResult>;
  /** Adds a message of the user to the running call, for its next turn. Only with sessions. */
  readonly steer: (
    context: ObjectSharedContext,
    request: { readonly callId: string; readonly input: string },
  ) => Promise<SentResult>;
  /** Decides on a tool call that waits with `awaitDecision`. The ids are those of its event `approvalRequested`. */
  readonly decide: (
    context: ObjectSharedContext,
    request: {
      readonly callId: string;
      readonly toolCallId: string;
      /** The tool call of the event. Needed if another approver edited the input before. */
      readonly asked?: Pick<ToolCallBlock, 'name' | 'input'>;
      readonly verdict: Verdict;
    },
  ) => Promise<SentResult>;
}

/** A call that is about to start or resume. */
export interface CallOnRestate {
  readonly agent: string;
  readonly key: string;
  readonly callId: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** The headers of the request to Restate. */
  readonly headers: ReadonlyMap<string, string>;
}

/** Options of `restateAgents`. */
export interface RestateAgentsOptions {
  /** Persists calls and sessions. All nodes that serve an agent need the same store. */
  readonly store: AgentStore;
  /** As the option of `journal()`: what to do about a tool that was running when a node died. Default: `ask`. */
  readonly onUncertain?: 'ask' | 'report' | 'rerun' | undefined;
  /** Returns options of a call that JSON cannot express, such as context values. Called for each attempt. Default: none. */
  readonly callOptions?: ((call: CallOnRestate) => OwnOptions) | undefined;
  /** Restate's options of the objects. Default: an `inactivityTimeout` of one day, and the defaults of the server. */
  readonly objectOptions?: Omit<ObjectOptions, 'explicitCancellation' | 'serde'> | undefined;
}

/**
 * The definitions for an endpoint of the Restate SDK. `drain` ends the calls of this node after their current steps, for a shutdown: Restate
 * tries again until another node runs them.
 */
export interface RestateAgents extends Drainable {
  /** A virtual object per agent, with its name, for `serve({ services })` of the Restate SDK. Its keys are session ids. */
  readonly services: VirtualObjectDefinition<string, AgentHandlers>[];
}

/**
 * Defines the objects that run the calls of agents on a Restate server. Restate decides which node runs a call, and tries again if it dies; the
 * store records the steps, so each attempt continues after the last one. Throws `config` for a name that Restate does not allow.
 *
 * @example
 * ```ts
 * const { services } = restateAgents([support], { store: openPostgres(url) });
 * await serve({ services, port: 9080 }); // of `@restatedev/restate-sdk`
 * ```
 */
export const restateAgents = (
  agents: readonly Agent[],
  options: RestateAgentsOptions,
): RestateAgents => {
  checkOptions('restateAgents()', options, rules, ['store']);
  agents.forEach(({ name }, index) =>
    assertName(
      name,
      agents.slice(0, index).some((it) => it.name === name),
    ),
  );
  addWithResolvers();
  const { store, onUncertain } = options;
  const durable = journal(store.calls, onUncertain === undefined ? {} : { onUncertain });
  return {
    services: agents.map((agent) => agentObject(agent, durable, options)),
    drain$: durable.drain$,
    drain: durable.drain,
  };
};

const isStore: Rule = [
  (value) => isRecord(value) && isRecord(value['calls']) && isRecord(value['calls']['driver']),
  "a store with 'calls', and 'sessions' for memory, such as openFiles(directory)",
];

const rules: Readonly<Record<keyof RestateAgentsOptions, Rule>> = {
  store: isStore,
  onUncertain: oneOf('ask', 'report', 'rerun'),
  callOptions: isFunction,
  objectOptions: isObject,
};

const assertName = (name: string, isRepeated: boolean): void => {
  const needed = 'Give each agent a name of its own: createAgent({ name }).';
  if (isRepeated) {
    throw new MillraceError('config', `Two agents are called '${name}'. ${needed}`);
  }
  if (!/^(?:[a-z]|_[a-z\d])[\w.-]*$/iu.test(name) || /^(?:restate|openapi)/iu.test(name)) {
    throw new MillraceError(
      'config',
      `Restate does not allow the agent name '${name}': use letters, digits and . _ -, starting with a letter, but not with 'restate' or 'openapi'.`,
    );
  }
};

/** The SDK uses this function of ES2024, which Node.js 20 lacks. */
const addWithResolvers = (): void => {
  if ('withResolvers' in Promise) return;
  Object.defineProperty(Promise, 'withResolvers', {
    configurable: true,
    writable: true,
    value(this: PromiseConstructor) {
      const parts: { resolve?: unknown; reject?: unknown } = {};
      const promise = new this((resolve, reject) => Object.assign(parts, { resolve, reject }));
      return { promise, ...parts };
    },
  });
};

/** The call that an object runs, in its state. */
interface Running {
  readonly callId: string;
  readonly invocationId: InvocationId;
}

const agentObject = (
  agent: Agent,
  durable: Journal<CallStore>,
  options: RestateAgentsOptions,
): VirtualObjectDefinition<string, AgentHandlers> =>
  object({
    name: agent.name,
    handlers: {
      call: handlers.object.exclusive(callOf(agent, durable, options)),
      interrupt: handlers.object.shared(interrupt),
      steer: handlers.object.shared(steerOf(options.store)),
      decide: handlers.object.shared(decide),
    },
    // A model or a tool may work for longer than the minute after which the server stops to send messages.
    options: { inactivityTimeout: { days: 1 }, ...options.objectOptions },
  });

const callOf =
  (
    agent: Agent,
    durable: Journal<CallStore>,
    { store, callOptions }: RestateAgentsOptions,
  ): AgentHandlers['call'] =>
  async (context, body) => {
    const { key } = context;
    const { id: invocationId, headers, attemptCompletedSignal } = context.request();
    const defaultId = store.sessions === undefined ? key : invocationId;
    const { input, callId, options } = checked(() => readCall(body, defaultId, store));
    const message$ = new ReplaySubject<CallMessage>(Infinity);
    const cancellation = new AbortController();
    const reply$ = defer(() => {
      const { metadata = {} } = options;
      const own = callOptions?.({ agent: agent.name, key, callId, metadata, headers }) ?? {};
      const given = { input, options, own, message$, signal: cancellation.signal };
      return attempted$({ agent, store, durable, key, callId, ...given });
    });
    let over: Promise<unknown> = Promise.resolve();
    try {
      context.set<Running>('running', { callId, invocationId });
      // Its result arrives once the state is stored, so a client that sees the call can reach it.
      await context.run('begin', () => undefined);
      // An invocation that awaits nothing but messages may be suspended, but not while this runs.
      const end = context.run('call', () => {
        const reply = firstValueFrom(untilAborted(reply$, attemptCompletedSignal));
        over = reply.catch(() => undefined);
        return reply.then(
          (answered) => ({ type: 'ended', reply: answered }) as const,
          (error: unknown) => Promise.reject(failureOf(error)),
        );
      });
      for (;;) {
        const next = await RestatePromise.race([end, context.signal<CallMessage>(messageSignal)]);
        if (next.type === 'ended') {
          context.clear('running');
          return { callId, reason: next.reply.reason, reply: next.reply };
        }
        message$.next(next);
      }
    } catch (error) {
      // The call has failed, or the invocation was cancelled.
      if (error instanceof TerminalError) {
        cancellation.abort();
        await over;
        context.clear('running');
      }
      throw error;
    }
  };

const interrupt: AgentHandlers['interrupt'] = async (context, body) => {
  const given = checked(() => {
    checkOptions('interrupt()', body, { callId: isId, message: isText }, ['callId']);
    return body;
  });
  const { callId, message } = given;
  return send(context, { type: 'interrupt', ...(message !== undefined && { message }) }, callId);
};

const steerOf =
  ({ sessions }: AgentStore): AgentHandlers['steer'] =>
  async (context, body) => {
    const { callId, input } = checked(() => {
      checkOptions('steer()', body, { callId: isId, input: isId }, ['callId', 'input']);
      if (sessions !== undefined) return body;
      throw new MillraceError(
        'config',
        "Only calls of sessions can be steered. Pass a store with 'sessions' to restateAgents().",
      );
    });
    return send(context, { type: 'steer', input }, callId);
  };

const decide: AgentHandlers['decide'] = async (context, body) => {
  const { callId, toolCallId, asked, verdict } = checked(() => {
    const needed = { callId: isId, toolCallId: isId, verdict: isVerdict };
    checkOptions('decide()', body, { ...needed, asked: isObject }, Object.keys(needed));
    return body;
  });
  return send(context, { type: 'decide', callId, toolCallId, ...(asked && { asked }), verdict });
};

const messageSignal = 'millrace.message';

const send = async (
  context: ObjectSharedContext,
  message: CallMessage,
  callId?: string,
): Promise<SentResult> => {
  const running = await context.get<Running>('running');
  if (running === null || (callId !== undefined && callId !== running.callId)) {
    return { status: 'notRunning' };
  }
  context.invocation(running.invocationId).signal<CallMessage>(messageSignal).resolve(message);
  return { status: 'sent' };
};

/** Unsubscribes when the attempt has ended, so that another one can claim the call. It emits nothing then. */
const untilAborted = <T>(source$: Observable<T>, signal: AbortSignal): Observable<T> =>
  merge(
    source$.pipe(takeUntil(signal.aborted ? of(undefined) : fromEvent(signal, 'abort'))),
    NEVER,
  );

const isId: Rule = [(value) => typeof value === 'string' && value !== '', 'a non-empty string'];

const isVerdict: Rule = [
  (value) =>
    typeof value === 'boolean' || (isRecord(value) && typeof value['approved'] === 'boolean'),
  'true, false or { approved, input?, reason? }',
];

const isGiven: Rule = [(value) => value !== null, 'a string, content blocks or messages'];

const readCall = (
  body: CallRequest,
  defaultId: string,
  { sessions }: AgentStore,
): Required<CallRequest> => {
  checkOptions('call()', body, { input: isGiven, callId: isId, options: isObject }, ['input']);
  const { input, callId = defaultId, options = {} } = body;
  const plain = { request: isObject, limits: isObject, metadata: isObject };
  checkOptions("The 'options' of call()", options, plain);
  if (sessions === undefined && callId !== defaultId) {
    throw new MillraceError(
      'config',
      `Without sessions, the key of the object is the id of its call. Omit 'callId', or call the object with the key '${callId}'.`,
    );
  }
  return { input, callId, options };
};

const checked = <T>(read: () => T): T => {
  try {
    return read();
  } catch (error) {
    throw failureOf(error);
  }
};

/** The error for Restate, which retries all but a `TerminalError`. It has no cause: Restate stores and shows errors. */
const failureOf = (error: unknown): Error => {
  const message = messageOf(error);
  if (!isMillraceError(error)) {
    return new TerminalError(`unknown: ${message}`, { errorCode: 500 });
  }
  const { code, retryable, userMessage } = error;
  const text = `${code}: ${message}`;
  if (code === 'store' || (retryable && retriedCodes.includes(code))) return new Error(text);
  const errorCode = statuses[code] ?? 500;
  return new TerminalError(text, { errorCode, metadata: { code, userMessage } });
};

/** Another node has the call or its session, or this one is shutting down. */
const retriedCodes: readonly MillraceError['code'][] = ['conflict', 'busy', 'aborted'];

const statuses: Partial<Readonly<Record<MillraceError['code'], number>>> = {
  config: 400,
  invalidRequest: 400,
  tooLarge: 413,
  contextTooLong: 413,
  guardRejected: 422,
  refused: 422,
  invalidResume: 409,
  conflict: 409,
  aborted: 409,
  rateLimited: 429,
  queueFull: 429,
  budget: 429,
};
