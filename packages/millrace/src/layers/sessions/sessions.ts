import {
  type MonoTypeOperatorFunction,
  type Observable,
  concat,
  defer,
  filter,
  finalize,
  firstValueFrom,
  lastValueFrom,
  of,
} from 'rxjs';
import type { OnSuspended } from '../../memories/cancel-suspended.js';
import type { OnFailure } from '../../memories/conversation.js';
import type { Agent } from '../../agent.js';
import { type Callable, type OutputOf, toCallable, type View } from '../../call/callable.js';
import { viewed } from '../../operators/wrap-agent.js';
import { sharedAs } from '../../flow/shared-events.js';
import { type CallOptions, checkPlaced, isContext, withDefaults } from '../../call/call-options.js';
import { misuse } from '../../values/errors.js';
import type { AgentEvent } from '../../events.js';
import type { Input } from '../../seams/input.js';
import type { AnyRun } from '../../values/reply.js';
import { forksAbove } from '../../journal/journal.js';
import type { Layer, Use } from '../../seams/layer.js';
import { readUse } from '../../seams/read-use.js';
import type { Memory } from '../../values/memory.js';
import type { MemoryFactory } from '../../memories/in-process-memory.js';
import { defined } from '../../values/json.js';
import {
  type Rule,
  checkOptions,
  having,
  isFunction,
  isText,
  oneOf,
  wholeNumber,
} from '../../values/options.js';
import { waitersFor } from '../../seams/tool-context.js';
import type { InputSchema } from '../../values/schema.js';
import { liveToolkit } from '../../tools/toolkit.js';
import type { ContextEntry } from '../../tools/context-key.js';
import type { LiveToolkit } from '../../tools/types.js';
import { cancelledSuspended$, loadedState$, savedState$ } from './session-actions.js';
import { forkedSession, watchedMemory } from './session-memory.js';
import {
  type CallEntry,
  createAttempts,
  partsFor,
  type PartsOf,
  sessionLayers,
  type SessionParts,
} from './session-layers.js';
import type { OnBusy, QueuedCall } from './session-queue.js';
import { type SessionState, stateVersion } from './session-state.js';
import { steerInto$, type SteerOutcome } from './steering.js';
import { isResumed } from '../../seams/through.js';

declare module '../../values/reply.js' {
  interface CallLabels {
    /** The session of a call, including calls of sub-agents. */
    readonly sessionId?: string;
  }
}

/**
 * A conversation. Its calls run one by one; one more errors with `busy`, unless `onBusy` differs. A tool cannot wait for a session
 * that waits for it: its call errors with `busy`. After an `await`, this is known only of calls with `parent: context`.
 *
 * What subscribes again to a cold call before that has replied, such as `retry`, asks with the same message, at the same place, and
 * what the failed attempt stored after it stays as a branch. After a reply, or with a `callId` of your own, it is another call.
 */
export interface Session<out Output = unknown, out Run extends AnyRun = AnyRun> extends Callable<
  Output,
  SessionCallOptions,
  Run
> {
  readonly id: string;
  /** Its name for people. It is saved with the session. Default: none. */
  readonly title: string | undefined;
  /** Sets its name; `undefined` removes it. */
  rename(title: string | undefined): void;
  /** Returns the same session with additional layers around its calls. */
  readonly with: <const Own extends InputSchema | undefined = undefined>(
    ...layers: Use<Own>
  ) => Session<OutputOf<Own, Output>, Run>;
  /** The messages. The running call, or the next one, reports changes by your program. */
  readonly memory: Memory;
  /** The events of its calls and their sub-agents. Hot; never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
  /** Its tools. Changes apply to the next request, even of a running call. */
  readonly toolkit: LiveToolkit;
  readonly queue: {
    readonly calls: readonly QueuedCall[];
    /** Emits the list on subscription and on each change. Hot; never errors, never completes. */
    readonly calls$: Observable<readonly QueuedCall[]>;
    /** Interrupts all queued calls and returns their number. They leave no trace in the conversation. */
    clear(message?: string): number;
  };
  /** Interrupts the running call, on each branch, or the running or queued one with this id. Returns false without such a call. */
  interrupt(message?: string, callId?: string): boolean;
  /**
   * Adds a user message to the running call, or to the one with this id, for its next turn. Emits the outcome and
   * completes; `invalidRequest` for other messages. Cold; unsubscribing takes it back before delivery.
   */
  steer$(input: Input, callId?: string): Observable<SteerOutcome>;
  /** The Promise form of `steer$`; starts immediately. */
  steer(input: Input, callId?: string): Promise<SteerOutcome>;
  /**
   * Cancels the suspended tool calls at the end of the conversation: they get error results with the reason, without a call. Waits
   * for a running call; in a session of `keepSessions`, errors with `conflict` if a call of another process has their results. Emits
   * how many results are no longer awaited, and completes. Cold.
   */
  cancelSuspended$(reason?: string): Observable<number>;
  /** The Promise form of `cancelSuspended$`; starts immediately. */
  cancelSuspended(reason?: string): Promise<number>;
  /** Emits the state as plain JSON. Errors with `invalidState` if the memory is no valid conversation. Cold. */
  saveState$(): Observable<SessionState>;
  saveState(): Promise<SessionState>;
  /**
   * Replaces the whole session by a saved state, after validating it, and completes. Takes up to 100,000 messages and
   * 2,000,000 values. Ignores tool groups that the agent no longer has; others that are not in the state are reset. Errors with `invalidState` for a bad state, `busy` while a call runs or waits, and `memory` if the
   * memory has no `replace$` or fails; the session is unchanged then. Cold.
   */
  loadState$(state: unknown): Observable<never>;
  /** The Promise form of `loadState$`; starts immediately. */
  loadState(state: unknown): Promise<void>;
  /** Starts a new conversation: drops messages, approvals and group changes; errors as `loadState$` does. Cold. */
  clear$(): Observable<never>;
  /** The Promise form of `clear$`; starts immediately. */
  clear(): Promise<void>;
}

export interface SessionCallOptions {
  /** Behavior if the session is busy. Default: `reject`. */
  readonly onBusy?: OnBusy | undefined;
  /** Maximum number of queued calls; one more errors with `queueFull`. Default: 16. */
  readonly maxQueue?: number | undefined;
  /**
   * For a failed call: `keep` its input and tool calls in memory, or `discard` what was not stored before. An aborted
   * call stores nothing more either way. Default: `keep`.
   */
  readonly onFailure?: OnFailure | undefined;
  /**
   * A message while suspended tools wait for results: `cancel` gives those tools error results, which say that the user wrote
   * something else, and continues; `refuse` errors with `invalidResume`. Results that come later are refused. Default: `cancel`.
   */
  readonly onSuspended?: OnSuspended | undefined;
  /**
   * The message that the call continues after, by its id, or a call, for its end; `null` for the beginning. What came after it before
   * stays as a branch. A call of another branch is no reason to wait: `onBusy` holds for each branch. A memory without branches, or
   * one that does not know the id, is a `conflict`. Default: the end of the branch that was continued last.
   */
  readonly after?: string | null | undefined;
  /** A message that the call replaces, with what came after it: its branch is continued by default from then on. */
  readonly replaces?: string | undefined;
}

/** Options of all sessions of an agent. Options of a call override them. */
export interface SessionsOptions extends Omit<SessionCallOptions, 'after' | 'replaces'> {
  /** Creates the memory of a session. Default: one in this process, which shows the last 40 turns to the model. */
  readonly memory?: MemoryFactory | undefined;
}

export interface SessionOptions {
  /** Values for tools by context key. They override those of the agent. */
  readonly context?: readonly ContextEntry[] | undefined;
}

export interface Sessions<out Output = unknown, out Run extends AnyRun = AnyRun> {
  /** Returns a handle for the conversation with this id. Cheap: nothing is loaded. */
  open(id: string, options?: SessionOptions): Session<Output, Run>;
}

/**
 * The sessions of an agent. They are shared by all uses of the same `memory` function: create it once. Without a `memory`, each stays
 * in this process, with all of its messages, until `session.clear()`, or as long as the agent is referenced: a server with more and
 * more of them needs `keepSessions`.
 *
 * @example
 * ```ts
 * const chat = sessions(agent).open('user-42');
 * await chat.call('My name is Ada.');
 * console.log((await chat.call('What is my name?')).text);
 * ```
 */
export const sessions = <Output, Run extends AnyRun>(
  agent: Agent<Output, Run>,
  options: SessionsOptions = {},
): Sessions<Output, Run> => {
  const open = openSessions(agent, options);
  return { open: (id, given) => open(id, given).session };
};

/** As `sessions`, with the parts of each session. */
export const openSessions = <Output, Run extends AnyRun>(
  agent: Agent<Output, Run>,
  options: SessionsOptions,
): ((
  id: string,
  given?: SessionOptions,
) => { readonly session: Session<Output, Run>; readonly parts: SessionParts }) => {
  if (!having('with', '')[0](agent)) throw misuse('sessions() needs an agent.');
  checkPlaced('sessions()', options, { ...sessionRules, memory: isFunction });
  const { memory, ...defaults } = options;
  const partsOf = partsFor(agent, memory);
  return (id, given = {}) => {
    checkOptions('open()', given, { context: isContext });
    if (typeof id !== 'string' || id === '') throw misuse('open() needs the id of a session.');
    const { context = [] } = given;
    const parts = partsOf(id);
    const session = createSession<Output, Run>(agent, partsOf, {
      ...{ parts, defaults, context },
      layers: [],
    });
    return { session, parts };
  };
};

const sessionRules = {
  onBusy: oneOf('reject', 'queue', 'switch', 'steer'),
  maxQueue: wholeNumber(0),
  onFailure: oneOf('keep', 'discard'),
  onSuspended: oneOf('cancel', 'refuse'),
};

const isPlace: Rule = [
  (value) => value === null || (typeof value === 'string' && value !== ''),
  'the id of a message or a call, or null for the beginning',
];

export const callRules: Readonly<Record<keyof SessionCallOptions, Rule>> = {
  ...sessionRules,
  after: isPlace,
  replaces: isText,
};

interface Handle {
  readonly parts: SessionParts;
  readonly defaults: Omit<SessionsOptions, 'memory'>;
  readonly context: readonly ContextEntry[];
  readonly layers: readonly Layer[];
}

const createSession = <Output, Run extends AnyRun>(
  agent: Agent,
  partsOf: PartsOf,
  handle: Handle,
): Session<Output, Run> => {
  const { parts, defaults, context, layers } = handle;
  const resumes = isResumed({ layers });
  const { id, queue, memory, record } = parts;
  const startCall$ = <Seen>(
    input: Input,
    options: CallOptions & SessionCallOptions,
    view: View<Seen>,
  ): Observable<Seen> => {
    const settings = { ...defaults, ...defined(options) };
    const { onBusy = 'reject', maxQueue = 16, onFailure = 'keep', ...rest } = settings;
    const { after, replaces, onSuspended: mode = 'cancel', ...given } = rest;
    const { onSuspended = 'cancel' } = defaults;
    const place = {
      ...defined({ after, replaces }),
      ...(mode !== onSuspended && { onSuspended: mode }),
    };
    const hasOwnTools = given.tools !== undefined;
    // A caller who names the call has one call: trying it again is a conflict with what it stored.
    const attempts = createAttempts(given.callId !== undefined);
    const start = (
      own: SessionParts,
      entry: Omit<
        CallEntry,
        'attempts' | 'hasOwnTools' | 'onFailure' | 'onSuspended' | 'place' | 'layers'
      >,
    ): Observable<Seen> => {
      const around = sessionLayers(
        { ...own, context },
        { ...entry, attempts, onFailure, onSuspended, place, hasOwnTools, layers },
      );
      return view(viewed(input, agent.with(layers, around), given));
    };
    // It may wait forever, and must not interrupt a call that came since.
    if (resumes) return start(parts, { onBusy: 'queue', maxQueue: Infinity });
    return defer(() => {
      const own = forkedSession(parts, forksAbove(given.parent), partsOf);
      const admission = own.queue.admit();
      const startOrSteer = (): Observable<Seen> => {
        const running = onBusy === 'steer' ? own.queue.runningAt(after) : undefined;
        if (running !== undefined && !waitersFor(given.parent).includes(running.info)) {
          admission.queued();
          const { limits } = withDefaults(agent, given);
          return steerInto$(input, { ...given, limits }, layers, running, view);
        }
        return start(own, { onBusy, maxQueue, arrival: admission });
      };
      // A steering call looks for the running call in its turn.
      const started$ = defer(startOrSteer);
      return (onBusy === 'steer' ? concat(admission.previousQueued$, started$) : started$).pipe(
        finalize(admission.queued),
      );
    });
  };
  const steer$: Session['steer$'] = (input, callId) =>
    defer(() => {
      const running = callId === undefined ? queue.running : queue.runningAs(callId);
      return running === undefined ? of(notRunning) : running.steering.steer$(input);
    });
  // The usage of the session, and the calls it knows, stay.
  const cleared = { version: stateVersion, messages: [], groups: {}, approvals: [] };
  const clear$ = defer(() =>
    loadedState$(parts, { ...record.state, ...cleared, interrupted: false }),
  );
  return {
    ...toCallable<Output, Run>(startCall$, callRules),
    id,
    get title() {
      return record.state.title;
    },
    rename: (title) => {
      checkTitle(title);
      record.rename(title);
    },
    with: (...more) => {
      const all = [...layers, ...readUse('with()', more)];
      return createSession(agent, partsOf, { ...handle, layers: all });
    },
    memory: watchedMemory(memory, (change) => record.reportMessages(change)),
    get events$() {
      return sharedAs(agent.events$, agent.events$.pipe(ofSession(id)));
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
    cancelSuspended$: (reason) => cancelledSuspended$(parts, reason),
    cancelSuspended: (reason) => firstValueFrom(cancelledSuspended$(parts, reason)),
    saveState$: () => savedState$(parts),
    saveState: () => firstValueFrom(savedState$(parts)),
    loadState$: (state) => loadedState$(parts, state),
    loadState: (state) => lastValueFrom(loadedState$(parts, state), { defaultValue: undefined }),
    clear$: () => clear$,
    clear: () => lastValueFrom(clear$, { defaultValue: undefined }),
  };
};

export const checkTitle = (title: unknown): void => {
  if (title !== undefined && !isText[0](title)) throw misuse('rename() needs a string.');
};

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
