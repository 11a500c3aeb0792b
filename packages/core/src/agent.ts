import { concat, defer, finalize, type Observable, Subject } from 'rxjs';
import { type AgentOptions, agentRules, type AnyAgentOptions, partsOf } from './agent-options.js';
import { createArrivals } from './arrivals.js';
import { runLoop } from './call/answer.js';
import { conversation } from './call/conversation.js';
import { preparing } from './call/prepare.js';
import { reviewing } from './call/review.js';
import { type CallSetup, call$ } from './run-call.js';
import { namesOf } from './tools/live-toolkit.js';
import { type Callable, type OutputOf, toCallable } from './callable.js';
import { forksAbove, isJournaled, isWithin } from './places.js';
import { type CallOptions, isContext, withDefaults } from './call-options.js';
import { type MillraceError, misuse } from './errors.js';
import type { AgentEvent, Listener } from './events.js';
import { createTrampoline } from './trampoline.js';
import type { Input } from './input.js';
import { join$ } from './join.js';
import { noJournal, type OpenJournal } from './journal/journal.js';
import type { CallRecord } from './journal/call-record.js';
import { createDraining, type Drainable } from './journal/draining.js';
import { journaled$ } from './journal/journaled.js';
import { type Resumable, resumable, resumed$, type ResumeOptions } from './journal/resume.js';
import { readUse } from './layer.js';
import { inProcessMemory, type Memory } from './memory.js';
import { checkOptions, defined, having } from './options.js';
import { createValidator, type InputSchema, type Validator } from './schema.js';
import { createSeats, type Seat } from './seats.js';
import { createSession, type Session } from './session.js';
import { forkedSession } from './sessions/forked-session.js';
import { createSessionRecords, type SessionRecord } from './sessions/session-records.js';
import type { ContextEntry } from './tools/context-key.js';
import { createToolkit } from './toolkit.js';
import { withAdded } from './tools/added-tools.js';
import type { View } from './view.js';

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

/** Defines an agent of options that are its own. `Default` is what its replies hold where it has no `output`. */
export const defineAgent = <const Output extends InputSchema | undefined, Default = undefined>(
  owner: string,
  options: AnyAgentOptions<Output>,
  answer: CallSetup['answer'] = runLoop,
): Agent<OutputOf<Output, Default>> => {
  const { interceptors, defaults, use } = partsOf(owner, options);
  const { name = 'agent', journal = noJournal, model: ownModel } = options;
  const { instructions, memory: memoryOf = inProcessMemory(), tools = [], context = [] } = options;
  const hot = createHotEvents();
  const seats = createSeats();
  const draining = createDraining();
  const arrive = createArrivals();
  const toolkit = createToolkit(defaults.tools ?? tools);
  const recordOf = createSessionRecords(toolkit);
  const ownOutput = outputOf(options.output, owner);
  const around = [...preparing(interceptors), reviewing];
  const talking = conversation({ instructions });

  const begin$ = <Seen>(
    named: OwnSession | undefined,
    input: Input,
    given: CallOptions,
    view: View<Seen>,
    resumed?: Resumed,
  ): Observable<Seen> => {
    const session =
      named && forkedSession(named, forksAbove(given.parent), (id) => ownSession(id, named));
    const { tools: _tools, output, model = ownModel, ...others } = withDefaults(defaults, given);
    const own = given.tools === undefined ? undefined : createToolkit(given.tools);
    const { history, addTools = [], ...rest } = others;
    const carried = resumed?.begun.history;
    const isPlain = history === undefined && carried === undefined;
    const setup: Omit<CallSetup, 'toolkit'> = {
      agentName: name,
      answer,
      model,
      ownOutput: output !== undefined,
      output: outputOf(output, 'The call') ?? ownOutput,
      interceptors,
      native: [isPlain ? talking : conversation({ instructions, history, carried }), ...around],
      use: [...use, ...readUse('The call', given.use)],
      pinned: namesOf(addTools),
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
      // What a call without a session does to its tools is its own.
      const kept = own === undefined ? session?.record.toolkit : undefined;
      const cell = kept ?? { current: own ?? toolkit };
      const whole: CallSetup = {
        ...setup,
        toolkit: addTools.length === 0 ? cell : withAdded(cell, addTools),
      };
      if (resumed !== undefined) {
        const { journal: open, begun } = resumed;
        return call$({ ...whole, opened: { journal: open, resumes: true }, begun }, view);
      }
      // A call that a tool makes is written down where that tool is.
      const isOwn = journal !== noJournal && !isJournaled(rest.parent);
      const arrival = isOwn && session !== undefined ? arrive(session.seat.sessionId) : undefined;
      const beginning = (): Observable<Seen> => {
        const running = rest.onBusy === 'steer' ? session?.seat.running : undefined;
        if (running !== undefined && !isWithin(rest.parent, running.call)) {
          arrival?.begun();
          return join$(whole, running, view);
        }
        if (isOwn) return journaled$(journal, whole, view, draining, arrival);
        return rest.parent === undefined ? draining.track$(call$(whole, view)) : call$(whole, view);
      };
      if (arrival === undefined) return beginning();
      const begun$ = defer(beginning);
      // Who joins a call looks whether there is one when it is his turn.
      const inTurn$ = rest.onBusy === 'steer' ? concat(arrival.inTurn$, begun$) : begun$;
      return inTurn$.pipe(finalize(arrival.begun));
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
      // It must not end a call that has come since, and has waited long enough.
      const maxQueue = Number.MAX_SAFE_INTEGER;
      const own = { ...options, ...defined(given), callId, onBusy: 'queue', maxQueue } as const;
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

const isMemory = (made: unknown): boolean =>
  having('load$', '')[0](made) && having('append$', '')[0](made);

const noMemoryMade = (owner: string): MillraceError =>
  misuse(
    `${owner}: 'memory' must give an object with load$() and append$(messages) for each session.`,
  );

/** A stream of events that runs whether or not somebody listens. */
interface HotEvents extends Listener {
  /** Hot. Never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
}

/** Makes a hot stream that shows one event to all its subscribers before it shows the next to any. */
const createHotEvents = (): HotEvents => {
  const subject = new Subject<AgentEvent>();
  const deliver = createTrampoline();
  return {
    events$: subject.asObservable(),
    get hears() {
      return subject.observed;
    },
    next: (event) => {
      if (subject.observed) deliver(() => subject.next(event));
    },
  };
};
