import equal from 'fast-deep-equal';
import {
  type MonoTypeOperatorFunction,
  type Observable,
  catchError,
  concat,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  filter,
  finalize,
  firstValueFrom,
  ignoreElements,
  lastValueFrom,
  map,
  of,
  take,
  tap,
  throwError,
} from 'rxjs';
import type { OnFailure } from '../../memories/conversation.js';
import type { Agent } from '../../agent.js';
import { type Callable, type OutputOf, toCallable, type View } from '../../call/callable.js';
import { type CallOptions, checkMoved, isContext, withDefaults } from '../../call/call-options.js';
import { contained, failAs } from '../../flow/contained.js';
import { MillraceError, misuse } from '../../values/errors.js';
import type { AgentEvent } from '../../events.js';
import { freezeMessage, type Message } from '../../values/message.js';
import type { Input } from '../../seams/input.js';
import { forksAbove } from '../../journal/journal.js';
import { type Layer, readUse, type Use } from '../../seams/layer.js';
import type { Memory, MemoryChange } from '../../values/memory.js';
import { appended$, isMemoryChange, kept$ } from '../../values/memory.js';
import { type MemoryFactory, inProcessMemory } from '../../memories/in-process-memory.js';
import { memoryChanges, type MessagesChange } from '../../phases/remember.js';
import {
  type Rule,
  checkOptions,
  defined,
  having,
  isFunction,
  oneOf,
  wholeNumber,
} from '../../values/options.js';
import { isWithin } from '../../seams/tool-context.js';
import type { InputSchema } from '../../values/schema.js';
import { createToolkit, liveToolkit } from '../../tools/toolkit.js';
import type { ContextEntry } from '../../tools/context-key.js';
import type { LiveToolkit } from '../../tools/types.js';
import { readState, toState } from './read-state.js';
import { type Entry, sessionLayers, type SessionPlace } from './session-layers.js';
import type { Occupant, OnBusy, QueuedCall } from './session-queue.js';
import { createSessionQueues } from './session-queue.js';
import { createSessionRecords, type SessionState, stateVersion } from './session-state.js';
import { join$, type SteerOutcome } from './steering.js';
import type { Fork } from '../../journal/call-record.js';
import { renamed } from '../../journal/forked-records.js';
import { isMessage } from '../../values/shape.js';

declare module '../../values/reply.js' {
  interface CallLabels {
    /** The session that a call belongs to, also as a sub-agent's. */
    readonly sessionId?: string;
  }
}

/** A conversation: its calls run one after the other and remember. A call errors with `busy` while another runs, unless `onBusy` says otherwise. */
export interface Session<out Output = unknown> extends Callable<Output, SessionCallOptions> {
  readonly id: string;
  /** Returns the same session with more layers around its calls. */
  readonly with: <const Own extends InputSchema | undefined = undefined>(
    ...layers: Use<Own>
  ) => Session<OutputOf<Own, Output>>;
  /** The messages. Changes by your program are reported by the running call, or by the next one. */
  readonly memory: Memory;
  /** The events of its calls and their sub-agents. Hot; never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
  /** Its tools. A change applies to the next request, also of a running call. */
  readonly toolkit: LiveToolkit;
  /** The waiting calls, in order. */
  readonly queue: {
    readonly calls: readonly QueuedCall[];
    /** Emits the list on subscription and on each change. Hot; never errors, never completes. */
    readonly calls$: Observable<readonly QueuedCall[]>;
    /** Interrupts all of them and returns their number. They leave no trace in the conversation. */
    clear(message?: string): number;
  };
  /** Interrupts the running call, or the running or waiting call of this id: it ends with the message or the text so far. Returns false if there is none. */
  interrupt(message?: string, callId?: string): boolean;
  /** Adds a message to the running call, or to the one of this id: its next turn starts with it. Emits the outcome and completes; errors with `invalidRequest` unless it is a user's message. Cold; unsubscribing takes it back until it is delivered. */
  steer$(input: Input, callId?: string): Observable<SteerOutcome>;
  /** The Promise form of `steer$`; starts at once. */
  steer(input: Input, callId?: string): Promise<SteerOutcome>;
  /** Emits the state of the session as plain JSON and completes. Errors with `invalidState` if the memory holds no valid conversation. Cold. */
  saveState$(): Observable<SessionState>;
  /** The Promise form of `saveState$`. */
  saveState(): Promise<SessionState>;
  /** Replaces the whole session with a saved state, after validating it, and completes. Groups of tools that the agent no longer has are ignored. Errors with `invalidState` for a bad state, `busy` while a call runs or waits, and `memory` if the memory has no `replace$` or fails; the session is unchanged then. Cold. */
  loadState$(state: unknown): Observable<never>;
  /** The Promise form of `loadState$`; starts at once. */
  loadState(state: unknown): Promise<void>;
}

/** Options of a call in a session, beside those of every call. */
export interface SessionCallOptions {
  /** What a call does that finds its session busy. Default: `reject`. */
  readonly onBusy?: OnBusy;
  /** Calls that may wait in a session before one more errors with `queueFull`. Default: 16. */
  readonly maxQueue?: number;
  /** What memory keeps of a call that fails: `keep` its input and its tool calls, or `discard` what was not stored before. An aborted call leaves nothing more either way. Default: `keep`. */
  readonly onFailure?: OnFailure;
}

/** Options of all sessions of an agent. Those of a call override them. */
export interface SessionsOptions extends SessionCallOptions {
  /** Makes the memory of a session. Default: one in this process. */
  readonly memory?: MemoryFactory;
}

/** Options of one session. */
export interface SessionOptions {
  /** What tools find under context keys. It overrides what the agent gives. */
  readonly context?: readonly ContextEntry[];
}

/** The sessions of an agent. */
export interface Sessions<out Output = unknown> {
  /** Returns a handle on the conversation of this id. Cheap: nothing is loaded. */
  open(id: string, options?: SessionOptions): Session<Output>;
}

/** Returns the sessions of an agent: conversations with memory. The same agent and the same `memory` function always give the same sessions, so create that function once. */
export const sessions = <Output>(
  agent: Agent<Output>,
  options: SessionsOptions = {},
): Sessions<Output> => {
  if (!having('with', '')[0](agent)) throw misuse('sessions() needs an agent.');
  checkMoved('sessions()', options, { ...callRules, memory: isFunction });
  const { memory, ...defaults } = options;
  const placeOf = placesOf(agent, memory);
  return {
    open: (id, given = {}) => {
      checkOptions('open()', given, { context: isContext });
      if (typeof id !== 'string' || id === '') throw misuse('open() needs the id of a session.');
      const { context = [] } = given;
      const place = placeOf(id);
      return createSession(agent, placeOf, { place, defaults, context, layers: [] });
    },
  };
};

export const callRules: Readonly<Record<keyof SessionCallOptions, Rule>> = {
  onBusy: oneOf('reject', 'queue', 'switch', 'steer'),
  maxQueue: wholeNumber(0),
  onFailure: oneOf('keep', 'discard'),
};

type PlaceOf = (id: string) => SessionPlace;

/** The places of sessions, by agent and by memory: two handles on one conversation must know of each other. */
const known = new WeakMap<object, Map<MemoryFactory | undefined, PlaceOf>>();

const placesOf = (agent: Agent, memory: MemoryFactory | undefined): PlaceOf => {
  const ofAgent = known.get(agent) ?? new Map<MemoryFactory | undefined, PlaceOf>();
  known.set(agent, ofAgent);
  const places = ofAgent.get(memory) ?? createPlaces(agent, memory ?? inProcessMemory());
  ofAgent.set(memory, places);
  return places;
};

const createPlaces = (agent: Agent, memoryOf: MemoryFactory): PlaceOf => {
  const queueOf = createSessionQueues();
  const recordOf = createSessionRecords(createToolkit(agent.tools));
  return (id) => {
    const memory = memoryOf(id);
    if (!isMemory(memory)) throw noMemoryMade();
    const queue = queueOf(id);
    const record = recordOf(id, (change) => {
      const hooks = queue.running?.hooks;
      hooks?.report(hooks.iteration(), change);
      return hooks !== undefined;
    });
    return { id, queue, memory, record };
  };
};

const isMemory = (made: unknown): boolean =>
  having('load$', '')[0](made) && having('append$', '')[0](made);

const noMemoryMade = (): MillraceError =>
  misuse(
    "sessions(): 'memory' must give an object with load$() and append$(messages) for each session.",
  );

interface Handle {
  readonly place: SessionPlace;
  readonly defaults: SessionCallOptions;
  readonly context: readonly ContextEntry[];
  readonly layers: readonly Layer[];
}

const createSession = <Output>(agent: Agent, placeOf: PlaceOf, handle: Handle): Session<Output> => {
  const { place, defaults, context, layers } = handle;
  const isResumed = layers.some(({ info }) => info?.resumed);
  const { id, queue, memory, record } = place;
  const begin$ = <Seen>(
    input: Input,
    options: CallOptions & SessionCallOptions,
    view: View<Seen>,
  ): Observable<Seen> => {
    const settings = { ...defaults, ...defined(options) };
    const { onBusy = 'reject', maxQueue = 16, onFailure = 'keep', ...given } = settings;
    const hasOwnTools = given.tools !== undefined;
    const begun = (
      own: SessionPlace,
      entry: Omit<Entry, 'hasOwnTools' | 'onFailure' | 'layers'>,
    ): Observable<Seen> => {
      const around = sessionLayers(
        { ...own, context },
        { ...entry, onFailure, hasOwnTools, layers },
      );
      return view(lazily(agent.with(layers, around), input, given));
    };
    // It waits however long, and must not end a call that has come since.
    if (isResumed) return begun(place, { onBusy: 'queue', maxQueue: Infinity });
    return defer(() => {
      const own = forkedSession(place, forksAbove(given.parent), placeOf);
      const arrival = own.queue.arrive();
      const beginning = (): Observable<Seen> => {
        const running = onBusy === 'steer' ? own.queue.running : undefined;
        if (running !== undefined && !isWithin(given.parent, running.call)) {
          arrival.begun();
          const { limits } = withDefaults(agent, given);
          return join$(input, { ...given, limits }, layers, running, view);
        }
        return begun(own, { onBusy, maxQueue, arrival });
      };
      // Who joins a call looks whether there is one when it is his turn.
      const begun$ = defer(beginning);
      return (onBusy === 'steer' ? concat(arrival.inTurn$, begun$) : begun$).pipe(
        finalize(arrival.begun),
      );
    });
  };
  const steer$: Session['steer$'] = (input, callId) =>
    defer(() => {
      const { running } = queue;
      return running === undefined || (callId !== undefined && callId !== running.call.callId)
        ? of(notRunning)
        : running.steering.steer$(input);
    });
  return {
    ...toCallable<Output>(begin$, callRules),
    id,
    with: (...more) => {
      const all = [...layers, ...readUse('with()', more)];
      return createSession(agent, placeOf, { ...handle, layers: all });
    },
    memory: watchedMemory(memory, (change) => record.note(change)),
    get events$() {
      return agent.events$.pipe(ofSession(id));
    },
    get toolkit() {
      return liveToolkit(record.toolkit);
    },
    get queue() {
      return {
        get calls() {
          return queue.queued;
        },
        get calls$() {
          return queue.queued$;
        },
        clear: queue.clear,
      };
    },
    interrupt: queue.interrupt,
    steer$,
    steer: (input, callId) => firstValueFrom(steer$(input, callId)),
    saveState$: () => savedState$(place),
    saveState: () => firstValueFrom(savedState$(place)),
    loadState$: (state) => loadedState$(place, state),
    loadState: (state) => lastValueFrom(loadedState$(place, state), { defaultValue: undefined }),
  };
};

const lazily = <Output>(
  agent: Agent<Output>,
  input: Input,
  options: CallOptions,
): Parameters<View<never>>[0] => ({
  get events$() {
    return agent.stream$(input, options);
  },
  get reply$() {
    return agent.call$(input, options);
  },
});

const notRunning: SteerOutcome = { status: 'notDelivered', why: 'notRunning' };

const ofSession =
  (id: string): MonoTypeOperatorFunction<AgentEvent> =>
  (event$) =>
    defer(() => {
      const running = new Set<string>();
      return event$.pipe(
        filter(({ type, callId, parentId, sessionId }) => {
          const isOurs =
            sessionId === id ||
            running.has(callId) ||
            (parentId !== undefined && running.has(parentId));
          if (isOurs) running.add(callId);
          if (type === 'postCall' || type === 'error') running.delete(callId);
          return isOurs;
        }),
      );
    });

const savedState$ = ({ memory, record }: SessionPlace): Observable<SessionState> =>
  kept$(memory).pipe(
    contained(),
    take(1),
    failAs('memory', 'The memory could not be read'),
    map((messages) => toState({ version: stateVersion, messages, ...record.state })),
  );

const loadedState$ = (
  { id, queue, memory, record }: SessionPlace,
  state: unknown,
): Observable<never> =>
  defer(() => {
    const read = readState(state);
    // While it has the place of a running call, others are told that the session is busy, or wait.
    const load: Occupant = { callId: '', input: [], lineage: [], interrupt: () => false };
    const leave = (): void => {
      queue.release(load);
      queue.startNext(load);
    };
    return queue.acquire$(load, 'reject', 0).pipe(
      catchError(() => throwError(() => busy(id))),
      take(1),
      concatMap(() =>
        concat(
          replaced$(memory, read.messages),
          defer(() => {
            record.restore(read);
            return EMPTY;
          }),
        ),
      ),
      // Whoever hears of the end finds the session free.
      tap({ complete: leave, error: leave, unsubscribe: leave }),
    );
  });

const replaced$ = (memory: Memory, messages: readonly Message[]): Observable<never> =>
  defer(() => {
    if (memory.replace$ === undefined) throw irreplaceable();
    return memory.replace$(messages.map(freezeMessage));
  }).pipe(contained(), failAs('memory', 'The memory could not be written'), ignoreElements());

const busy = (sessionId: string): MillraceError =>
  new MillraceError(
    'busy',
    `The session '${sessionId}' has a call that runs, and takes no other state meanwhile. Wait until it has ended, or interrupt it.`,
  );

const irreplaceable = (): MillraceError =>
  new MillraceError(
    'memory',
    "The memory cannot take the messages of a state: it has no 'replace$'. Add replace$(messages) to it, or use one that has it, such as inProcessMemory() makes.",
  );

const watchedMemory = (memory: Memory, tell: (change: MessagesChange) => void): Memory => {
  const replace$ = memory.replace$?.bind(memory);
  return {
    load$: () => memory.load$(),
    all$: () => kept$(memory),
    append$: (messages, hasFailed) =>
      defer(() => {
        let change: MemoryChange = { appended: messages, removed: [] };
        return memory.append$(messages, hasFailed).pipe(
          tap({
            next: (emitted) => {
              if (isMemoryChange(emitted)) change = emitted;
            },
            complete: () => memoryChanges(change).forEach(tell),
          }),
        );
      }),
    ...(replace$ !== undefined && {
      replace$: (messages: readonly Message[]): Observable<unknown> =>
        kept$(memory).pipe(
          take(1),
          defaultIfEmpty<readonly Message[], readonly Message[]>([]),
          concatMap((before) =>
            replace$(messages).pipe(
              tap({
                complete: () => memoryChanges(difference(before, messages)).forEach(tell),
              }),
            ),
          ),
        ),
    }),
  };
};

const difference = (before: readonly Message[], after: readonly Message[]): MemoryChange => {
  const found = before.findIndex((message, index) => !equal(message, after[index]));
  const from = found === -1 ? before.length : found;
  return { appended: after.slice(from), removed: before.slice(from).map(({ id }) => id) };
};

interface ForkableSession {
  readonly id: string;
  readonly memory: Memory;
}

/** Gives the session that a call below a forked one is in, instead of the one that it names: a copy of its own, `<session>~<fork>`, which begins with what that one holds but what the forked call has added behind the point. What is there is never written to. */
const forkedSession = <Session extends ForkableSession>(
  named: Session,
  forks: readonly Fork[],
  sessionOf: (sessionId: string) => Session,
): Session =>
  forks.reduce((original, fork) => {
    const copy = sessionOf(`${named.id}~${fork.to}`);
    return { ...copy, memory: copiedMemory(original.memory, copy.memory, fork) };
  }, named);

const copiedMemory = (original: Memory, own: Memory, fork: Fork): Memory => {
  const isBegun$ = (): Observable<boolean> =>
    once$(kept$(own)).pipe(map(({ length }) => length > 0));
  const past$ = (messages$: Observable<readonly Message[]>): Observable<readonly Message[]> =>
    once$(messages$).pipe(map((messages) => pastOf(messages, fork)));
  const replace$ = own.replace$?.bind(own);
  return {
    load$: () =>
      defer(isBegun$).pipe(
        concatMap((isBegun) => (isBegun ? own.load$() : past$(original.load$()))),
      ),
    all$: () =>
      defer(isBegun$).pipe(concatMap((isBegun) => (isBegun ? kept$(own) : past$(kept$(original))))),
    append$: (messages, hasFailed) =>
      defer(isBegun$).pipe(
        concatMap((isBegun) =>
          isBegun
            ? own.append$(messages, hasFailed)
            : past$(kept$(original)).pipe(
                concatMap((past) => appended$(own, [...past, ...messages])),
              ),
        ),
      ),
    ...(replace$ !== undefined && { replace$ }),
  };
};

const once$ = (messages$: Observable<readonly Message[]>): Observable<readonly Message[]> =>
  messages$.pipe(take(1), defaultIfEmpty<readonly Message[], readonly Message[]>([]));

const pastOf = (messages: readonly Message[], { from, to, calls }: Fork): readonly Message[] =>
  messages.flatMap((message) => {
    const { id } = message;
    if (!id.startsWith(`${from}/`)) return [message];
    const isKept = calls.some((call) => id.startsWith(`${from}/${call}/`));
    const kept = isKept ? renamed(message, from, to) : undefined;
    return isMessage(kept) ? [kept] : [];
  });
