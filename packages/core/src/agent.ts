import { defer, type Observable } from 'rxjs';
import { call$ } from './call.js';
import { type Callable, type OutputOf, toCallable } from './callable.js';
import type { CallInfo } from './call-info.js';
import { forksAbove, isJournaled, isWithin } from './call-scope.js';
import {
  type CallDefaults,
  type CallOptions,
  checkDefaults,
  isContext,
  isSchema,
  withDefaults,
} from './call-options.js';
import type { PlannedCall } from './planned-call.js';
import { type MillraceError, misuse } from './errors.js';
import type { AgentEvent } from './events.js';
import { createHotEvents } from './hot-events.js';
import type { Input } from './input.js';
import { type Interceptor, isInterceptor } from './interceptor.js';
import { join$ } from './join.js';
import { type Journal, noJournal, type OpenJournal } from './journal/journal.js';
import type { CallRecord } from './journal/call-record.js';
import { createDraining, type Drainable } from './journal/draining.js';
import { journaled$ } from './journal/journaled.js';
import { type Resumable, resumable, resumed$, type ResumeOptions } from './journal/resume.js';
import { inProcessMemory, type Memory, type MemoryFactory } from './memory.js';
import type { Model } from './model.js';
import {
  checkOptions,
  defined,
  having,
  isFunction,
  isModel,
  isObject,
  isText,
  listOf,
  type Rule,
} from './options.js';
import type { CallStage } from './pipeline/call-stage.js';
import { nativePipeline } from './pipeline/native-pipeline.js';
import type { PhaseFactory } from './phase.js';
import { nativePhases } from './phase-list.js';
import { createValidator, type InputSchema, type Validator } from './schema.js';
import { createSeats, type Seat } from './seats.js';
import { createSession, type Session } from './session.js';
import { forkedSession } from './sessions/forked-session.js';
import { createSessionRecords, type SessionRecord } from './sessions/session-records.js';
import type { ContextEntry } from './tools/context-key.js';
import { createToolkit } from './toolkit.js';
import { withAdded } from './tools/added-tools.js';
import type { ToolEntry } from './tools/types.js';
import type { View } from './view.js';

/** What an agent is made of. */
export interface AgentOptions<Output extends InputSchema | undefined = InputSchema | undefined> {
  /** What events and other agents call it. Default: `agent`. */
  readonly name?: string;
  readonly model: Model;
  /** The system prompt, or a function that writes it for a call. */
  readonly instructions?: string | ((call: CallInfo) => string);
  /** Tools, and groups of tools that `toolGroup` has made. Each session begins with them. */
  readonly tools?: readonly ToolEntry[];
  /** What every answer must be: `reply.output` is of it. A call may say otherwise. */
  readonly output?: Output;
  /** Gives the memory of a session. Default: one in this process. */
  readonly memory?: MemoryFactory;
  /**
   * What stands in the way of every call, or looks on: `on`, `onCall`, `prepare`, `transformChunks`, `watch`, and what is made
   * of them, such as `logEvents`, `redact` and `guardOutput`.
   */
  readonly interceptors?: readonly (Interceptor | readonly Interceptor[])[];
  /** One turn of the loop, as a list of phases. Default: `nativePhases`. */
  readonly phases?: readonly PhaseFactory[];
  /** What happens in a call around its loop, as a list of stages. Default: `nativePipeline`. */
  readonly pipeline?: readonly CallStage[];
  /** What tools find under context keys. What a session and a call give goes before it. */
  readonly context?: readonly ContextEntry[];
  /** Writes down the steps of every call, so that `resume$` can go on with one that was broken off: a store of calls, such as `createCallStore` makes. Default: it remembers none. */
  readonly journal?: Journal;
  /** What a call may say otherwise. */
  readonly defaults?: CallDefaults;
}

/** An immutable definition: nothing of a call lives in it. A call without a session remembers nothing. */
export interface Agent<out Output = unknown>
  extends Callable<Output>, Resumable<Output>, Drainable {
  readonly name: string;
  /** The events of all its calls, and of the calls below them. Hot; never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
  /** A handle on the conversation of this id: cheap, and the same conversation for the same id. */
  session(id: string, options?: SessionOptions): Session<Output>;
}

/** What a handle on a conversation gives to the calls that are made by it. */
export interface SessionOptions {
  /** What tools find under context keys. It goes before what the agent gives. */
  readonly context?: readonly ContextEntry[];
}

/** Defines an agent, or throws a `config` error that names the fix. */
export const createAgent = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
): Agent<OutputOf<Output, undefined>> => {
  checkOptions('createAgent()', options, agentRules, ['model']);
  return defineAgent('createAgent()', options);
};

/** What an agent is made of whose loop may be another than the model's: it needs no model then. */
export type AnyAgentOptions<Output extends InputSchema | undefined> = Omit<
  AgentOptions<Output>,
  'model'
> & { readonly model?: Model };

/** Defines an agent of options that are its own. `Default` is what its replies hold where it has no `output`. */
export const defineAgent = <const Output extends InputSchema | undefined, Default = undefined>(
  owner: string,
  options: AnyAgentOptions<Output>,
): Agent<OutputOf<Output, Default>> => {
  checkDefaults(`${owner}, 'defaults'`, options.defaults ?? {});
  const { name = 'agent', defaults = {}, journal = noJournal, model: ownModel } = options;
  const interceptors = options.interceptors?.flat() ?? [];
  const phases = [...(options.phases ?? nativePhases)];
  const pipeline = [...(options.pipeline ?? nativePipeline)];
  const { instructions, memory: memoryOf = inProcessMemory(), tools = [], context = [] } = options;
  const hot = createHotEvents();
  const seats = createSeats();
  const draining = createDraining();
  const toolkit = createToolkit(defaults.tools ?? tools);
  const recordOf = createSessionRecords(toolkit);
  const ownOutput = outputOf(options.output, owner);
  if (!interceptors.every(isInterceptor)) throw noInterceptor(owner);
  if (phases.length === 0 || !phases.every((each) => typeof each === 'function'))
    throw noPhases(owner);
  if (pipeline.length === 0 || !pipeline.every((each) => typeof each === 'function'))
    throw noStages(owner);

  const begin$ = <Seen>(
    named: OwnSession | undefined,
    input: Input,
    given: CallOptions,
    view: View<Seen>,
    resumed?: Resumed,
  ): Observable<Seen> => {
    const session =
      named && forkedSession(named, forksAbove(given.parent), (id) => ownSession(id, named));
    const { tools: _tools, output, model = ownModel, ...rest } = withDefaults(defaults, given);
    const own = given.tools === undefined ? undefined : createToolkit(given.tools);
    const plan: Omit<PlannedCall, 'toolkit'> = {
      agentName: name,
      model,
      ownOutput: output !== undefined,
      output: outputOf(output, 'The call') ?? ownOutput,
      instructions,
      interceptors,
      phases,
      pipeline,
      options: {
        ...rest,
        context: [...context, ...(session?.context ?? []), ...(rest.context ?? [])],
      },
      // What a session gives, a journal cannot hold either.
      given:
        session === undefined || session.context.length === 0
          ? given
          : { ...given, context: [...session.context, ...(given.context ?? [])] },
      listener: hot,
      input,
      session,
    };
    return defer(() => {
      const running = rest.onBusy === 'steer' ? session?.seat.running : undefined;
      // What a call without a session does to its tools is its own.
      const kept = own === undefined ? session?.record.toolkit : undefined;
      const cell = kept ?? { current: own ?? toolkit };
      const whole: PlannedCall = {
        ...plan,
        toolkit: rest.addTools === undefined ? cell : withAdded(cell, rest.addTools),
      };
      if (resumed !== undefined) {
        const { journal: open, begun } = resumed;
        return call$({ ...whole, opened: { journal: open, resumes: true }, begun }, view);
      }
      if (running !== undefined && !isWithin(rest.parent, running.call)) {
        return join$(whole, running, view);
      }
      // A call that a tool makes is written down where that tool is.
      if (isJournaled(rest.parent)) return call$(whole, view);
      if (journal !== noJournal) return journaled$(journal, whole, view, draining);
      return rest.parent === undefined ? draining.track$(call$(whole, view)) : call$(whole, view);
    });
  };
  const callable = (session?: OwnSession): Callable<OutputOf<Output, Default>> =>
    toCallable((input, given, view) => begin$(session, input, given, view), session !== undefined);
  const ownSession = (id: string, given: SessionOptions): OwnSession => {
    const seat = seats.seatOf(id);
    const memory = memoryOf(id);
    if (!isMemory(memory)) throw noMemoryMade(owner);
    const record = recordOf(id, (change) => {
      const hooks = seat.running?.hooks;
      hooks?.report(hooks.iteration(), change);
      return hooks !== undefined;
    });
    return {
      seat,
      memory,
      record,
      context: given.context ?? [],
    };
  };
  const goOn$ = <Seen>(
    callId: string,
    given: ResumeOptions,
    view: View<Seen>,
  ): Observable<Seen> => {
    const gone$ = resumed$({ journal, agentName: name }, callId, given, (open, begun) => {
      const { sessionId, options, input } = begun;
      const session = sessionId === undefined ? undefined : ownSession(sessionId, {});
      const goOn: Resumed = { journal: draining.untilDrained(open, callId), begun };
      // It must not end a call that has come since.
      const own = { ...options, ...defined(given), callId, onBusy: 'queue' } as const;
      return begin$(session, input, own, view, goOn);
    });
    return draining.track$(gone$, callId);
  };
  return {
    ...callable(),
    ...resumable<OutputOf<Output, Default>>(goOn$),
    drain$: draining.drain$,
    drain: draining.drain,
    name,
    events$: hot.events$,
    session: (id, given = {}) => {
      checkOptions('session()', given, { context: isContext });
      if (typeof id !== 'string' || id === '') throw misuse('session() needs the id of a session.');
      const own = ownSession(id, given);
      return createSession(callable(own), own, hot.events$);
    },
  };
};

/** A call that goes on, with its journal. */
interface Resumed {
  readonly journal: OpenJournal;
  readonly begun: CallRecord;
}

/** A session as its calls see it. */
interface OwnSession {
  readonly seat: Seat;
  readonly memory: Memory;
  readonly context: readonly ContextEntry[];
  readonly record: SessionRecord;
}

/** Schemas that were understood before: a call that is made again brings the same one. */
const outputs = new WeakMap<object, Validator>();

const outputOf = (schema: InputSchema | undefined, owner: string): Validator | undefined => {
  if (schema === undefined) return undefined;
  const validator = outputs.get(schema) ?? createValidator(schema, `${owner}: 'output'`);
  outputs.set(schema, validator);
  return validator;
};

/** What the options of an agent may be. */
export const agentRules: Readonly<Record<keyof AgentOptions, Rule>> = {
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
  phases: listOf('phases'),
  pipeline: listOf('stages'),
  context: isContext,
  journal: having('open$', 'a Journal, such as a store of calls'),
  defaults: isObject,
};

const isMemory = (made: unknown): boolean =>
  having('load$', '')[0](made) && having('append$', '')[0](made);

const noMemoryMade = (owner: string): MillraceError =>
  misuse(
    `${owner}: 'memory' must give an object with load$() and append$(messages) for each session.`,
  );

const noInterceptor = (owner: string): MillraceError =>
  misuse(
    `${owner}: 'interceptors' takes what on(type, operator), onCall(type, build), prepare(operator), transformChunks(operator) and watch(handler) return.`,
  );

const noPhases = (owner: string): MillraceError =>
  misuse(
    `${owner}: 'phases' takes a list of phases, such as insertBefore(reasoning, myPhase) makes.`,
  );

const noStages = (owner: string): MillraceError =>
  misuse(
    `${owner}: 'pipeline' takes a list of stages, such as insertStageAfter(loadHistory, retrieve(retriever)) makes.`,
  );
