import {
  AsyncSubject,
  asyncScheduler,
  type MonoTypeOperatorFunction,
  type SchedulerLike,
  Subject,
  tap,
} from 'rxjs';
import type { CallInfo } from './call-info.js';
import type { CallOptions } from './call-options.js';
import { joinDemand, type JoinableDemand } from './demand.js';
import { MillraceError, misuse } from './errors.js';
import type { AgentEvent, Listener } from './events.js';
import type { Interceptor } from './interceptor.js';
import { createInterruption, type Interruption } from './interruption.js';
import type { Fork } from './journal/call-record.js';
import { type OpenJournal, unwritten } from './journal/journal.js';
import { createReplaying, type Replaying } from './journal/replaying.js';
import type { LazyAbort } from './lazy-abort.js';
import type { RetryBudget } from './model.js';
import { createRetryBudget } from './models/retry-budget.js';
import { placeName } from './place-name.js';
import type { Reply } from './reply.js';
import type { OpenRun } from './run.js';
import type { SessionRecord } from './sessions/session-records.js';
import { type ContextValues, contextValues, valueOf } from './tools/context-key.js';
import { liveToolkit, type ToolkitCell } from './tools/live-toolkit.js';
import { createTrampoline, type Trampoline } from './trampoline.js';
import type { Approver, ToolContext } from './tools/types.js';
import { addUsage, noUsage, type Usage } from './usage.js';

/** What one call owns, and hands down to the calls that its tools make. */
export interface CallScope {
  readonly call: CallInfo;
  /** What happens in the call from now on. Hot; ends with the call, and errors where it does. */
  readonly events$: Subject<AgentEvent>;
  /** How the call ends: with its reply behind the last event, or with its error. */
  readonly reply$: AsyncSubject<Reply>;
  readonly interruption: Interruption;
  readonly demand: JoinableDemand;
  readonly scheduler: SchedulerLike;
  /** Those who hear this call, and all calls below it. */
  readonly listeners: readonly Listener[];
  /** Delivers the events of a whole family of calls, one after the other. */
  readonly deliver: Trampoline;
  /** Runs the turns of a whole family of calls, one after the other: nested ones would overflow the stack. */
  readonly turns: Trampoline;
  /** What a whole family of calls may send again. */
  readonly retryBudget: RetryBudget;
  /** The ids of a whole family of calls that is written down. It only grows. */
  readonly family: Set<string>;
  /** Where the steps of a whole family of calls are written down. */
  readonly journal: OpenJournal;
  /** What the call tells again, where it goes on from where it was broken off. */
  readonly replaying: Replaying | undefined;
  /** Numbers the events of a whole family of calls. */
  readonly nextSeq: () => number;
  /** What tools find under context keys. */
  readonly values: ContextValues;
  /** Decide on every run of a tool, here and below. */
  readonly approvers: readonly Approver[];
  /** The interruption of the call above, where there is one. */
  readonly above: Interruption | undefined;
  /** The call above has been interrupted, and begins no other one. */
  readonly isLate: boolean;
  /** The interceptors of those whose words the call's are: its own, and those of the calls above that it speaks for. */
  readonly voice: readonly Interceptor[];
  /** What is known of the session in which it is: its own, or that of the calls above. */
  readonly record: SessionRecord | undefined;
  /** Tells the session and the calls above what a request has cost. */
  readonly reportUsage: (usage: Usage) => void;
  /** Tells the tool that makes the call that it was stopped, and all above it with it. */
  readonly reportHalt: (error: MillraceError) => void;
  /** The forks that have led to the outermost call. */
  readonly forks: readonly Fork[];
  /** The calls above it, and itself. */
  readonly lineage: readonly CallInfo[];
}

/** The journal that has been opened for a call. */
export interface OpenedJournal {
  readonly journal: OpenJournal;
  /** The call has been broken off, and goes on. */
  readonly resumes: boolean;
  /** Is told when the call has its place in the session, or waits for it: the next one may begin. */
  readonly hasArrived?: () => void;
}

const twice = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `There is a call '${callId}' already in the call that it belongs to. Give each an id of its own, or none.`,
  );

const listenersOf = (opened: OpenedJournal | undefined): readonly Listener[] =>
  opened?.journal.listener === undefined ? [] : [opened.journal.listener];

/** Tells whether the tool that makes a call has a journal, in which that call is written down, too. */
export const isJournaled = (parent: ToolContext | undefined): boolean =>
  parent !== undefined && placeOf(parent).scope.journal !== unwritten;

/** What the scope of a call is made of. */
export interface ScopeInit {
  readonly agentName: string;
  readonly options: CallOptions;
  readonly sessionId: string | undefined;
  /** Hears every call of the agent. */
  readonly listener: Listener;
  readonly interceptors: readonly Interceptor[];
  readonly opened?: OpenedJournal | undefined;
  readonly record?: SessionRecord | undefined;
  /** Of an outermost call that is a fork. */
  readonly forks?: readonly Fork[] | undefined;
}

/** Opens the scope of a call: at the root, or below the tool that makes it. */
export const createScope = ({
  agentName,
  options,
  sessionId,
  listener,
  interceptors,
  opened,
  record,
  forks,
}: ScopeInit): CallScope => {
  const {
    parent,
    callId,
    demand,
    scheduler,
    metadata,
    context,
    approve,
    retryBudget = 10,
    speaks = false,
  } = options;
  const events$ = new Subject<AgentEvent>();
  const own: Listener = {
    get hears() {
      return events$.observed;
    },
    next: (event) => events$.next(event),
  };
  const above = parent === undefined ? undefined : placeOf(parent);
  const id = callId ?? above?.callIds.next() ?? randomId();
  const { scope } = above ?? {};
  const journal = opened?.journal ?? scope?.journal ?? unwritten;
  const resumes = opened?.resumes === true || scope?.replaying !== undefined;
  const family = scope?.family ?? new Set<string>();
  if (journal !== unwritten) {
    if (family.has(id)) throw twice(id);
    family.add(id);
  }
  const session = sessionId ?? scope?.call.sessionId;
  const isHeard = speaks && (scope?.call.parentId === undefined || scope.call.speaks === true);
  const call: CallInfo = Object.freeze({
    rootId: scope?.call.rootId ?? id,
    callId: id,
    agent: Object.freeze([...(scope?.call.agent ?? []), agentName]),
    metadata: Object.freeze({ ...(metadata ?? scope?.call.metadata) }),
    ...(scope === undefined ? {} : { parentId: scope.call.callId }),
    ...(session === undefined ? {} : { sessionId: session }),
    ...(isHeard && { speaks: true }),
  });
  return {
    call,
    events$,
    reply$: new AsyncSubject(),
    interruption: createInterruption(resumes && journal.isWritten?.(`${id}/open`) === true),
    demand: joinDemand(demand, opened?.journal.demand, scope?.demand),
    scheduler: scheduler ?? scope?.scheduler ?? asyncScheduler,
    listeners: [...new Set([own, listener, ...listenersOf(opened), ...(scope?.listeners ?? [])])],
    deliver: scope?.deliver ?? createTrampoline(),
    turns: scope?.turns ?? createTrampoline(),
    family,
    journal,
    // Each call has its own: one that a tool makes may go on while the call above is past what is written down.
    replaying: resumes
      ? createReplaying((type) => journal.wasTold?.(id, type) === true)
      : undefined,
    nextSeq: scope?.nextSeq ?? counter(journal.lastSeq),
    retryBudget: scope?.retryBudget ?? createRetryBudget(retryBudget),
    values: contextValues(scope?.values.entries, context),
    approvers: [...(approve === undefined ? [] : [approve]), ...(scope?.approvers ?? [])],
    above: scope?.interruption,
    isLate: above?.isOver() ?? false,
    voice: isHeard ? [...interceptors, ...(scope?.voice ?? [])] : interceptors,
    record: record ?? scope?.record,
    reportHalt: (error) => above?.haltBy(error),
    reportUsage: (usage) => {
      record?.spend(usage);
      above?.spend(usage);
    },
    forks: forks ?? scope?.forks ?? [],
    lineage: [...(scope?.lineage ?? []), call],
  };
};

/** The forks that have led to the call of the tool that makes another one. */
export const forksAbove = (parent: ToolContext | undefined): readonly Fork[] =>
  (parent && places.get(parent)?.scope.forks) ?? [];

/** Tells whether a tool that makes a call runs, at whatever depth, within another one: that one waits for it. */
export const isWithin = (parent: ToolContext | undefined, call: CallInfo): boolean =>
  parent !== undefined && placeOf(parent).scope.lineage.includes(call);

/** Makes what a run of a tool is lent. A call that names it as its parent belongs to this scope. */
export const lend = (
  scope: CallScope,
  toolkit: ToolkitCell,
  { toolUseId, purpose }: { readonly toolUseId: string; readonly purpose?: 'approval' | undefined },
  { iteration, messages, kept }: Pick<OpenRun, 'iteration' | 'messages' | 'kept'>,
  abort: LazyAbort,
  /** Whether a call may still begin. */
  isOver: () => boolean = () => false,
): ToolContext => {
  const { call, demand, scheduler, values } = scope;
  const { callId, agent, metadata, sessionId } = call;
  const context: ToolContext = {
    callId,
    toolUseId,
    idempotencyKey: `${callId}/${toolUseId}`,
    agent,
    metadata,
    iteration,
    messages,
    kept,
    get signal() {
      return abort.signal;
    },
    demand,
    scheduler,
    get toolkit() {
      return liveToolkit(toolkit);
    },
    get: (key) => valueOf(key, values),
    ...(sessionId === undefined ? {} : { sessionId }),
  };
  // Who decides on a run makes calls of other ids than the run does: that may be resumed without.
  const below = `${callId}/${placeName(toolUseId)}${purpose === undefined ? '' : `+${purpose}`}`;
  let spent = noUsage;
  let halt: MillraceError | undefined;
  places.set(context, {
    get halt() {
      return halt;
    },
    haltBy: (error) => {
      halt ??= error;
    },
    scope,
    isOver,
    get spent() {
      return spent;
    },
    spend: (usage) => {
      spent = addUsage(spent, usage);
      scope.reportUsage(usage);
    },
    callIds: createCallIds(below),
  });
  return context;
};

/**
 * Makes what each of some ways is lent that go on at the same time within one run of a tool: the calls of each have ids of their own, the same on a resumed run, whichever way
 * is the quicker one then.
 */
export const lendAside = (context: ToolContext, ways: number): readonly ToolContext[] => {
  const place = placeOf(context);
  return place.callIds.aside(ways).map((callIds) => {
    // It is the same in all but what it is.
    const own = new Proxy(context, {});
    places.set(own, {
      ...place,
      get spent() {
        return place.spent;
      },
      callIds,
    });
    return own;
  });
};

/** Where in a family of calls a tool runs: not for the tool to see. */
interface Place {
  readonly scope: CallScope;
  readonly isOver: () => boolean;
  /** What has stopped a call below: whatever the tool makes of it, it is not what the tool gives. */
  readonly halt: MillraceError | undefined;
  readonly haltBy: (error: MillraceError) => void;
  /** What the calls below have cost until now, at any depth. */
  readonly spent: Usage;
  readonly spend: (usage: Usage) => void;
  readonly callIds: CallIds;
}

/** Ids of calls are positions, the same on a resumed run. */
interface CallIds {
  readonly next: () => string;
  /** Those of some ways that go on at the same time. */
  readonly aside: (ways: number) => readonly CallIds[];
}

const createCallIds = (below: string): CallIds => {
  const nth = counter();
  return {
    next: () => {
      const index = nth();
      // No position of a step has a plus: what the second call does is not taken for the first one's.
      return index === 1 ? below : `${below}+${index}`;
    },
    aside: (ways) => {
      const index = nth();
      return Array.from({ length: ways }, (_, way) =>
        createCallIds(`${below}+${index}.${way + 1}`),
      );
    },
  };
};

/** What the calls have cost until now that a tool has made, and those below them. */
export const usageBelow = (lent: ToolContext): Usage => placeOf(lent).spent;

/** Errors where a call below was stopped by its journal: nothing must be written down of a tool that was stopped with it. */
export const unlessHalted = <T>(lent: ToolContext): MonoTypeOperatorFunction<T> =>
  tap(() => {
    const { halt } = placeOf(lent);
    if (halt !== undefined) throw halt;
  });

const places = new WeakMap<ToolContext, Place>();

const placeOf = (context: ToolContext): Place => {
  const place = places.get(context);
  if (place !== undefined) return place;
  throw misuse(
    "'parent' must be the context that a tool's run got, as it is and not a copy of it.",
  );
};

const counter = (from = 0): (() => number) => {
  let last = from;
  return () => {
    last += 1;
    return last;
  };
};

/** An id for a call that has not been given one. */
export const randomId = (): string => crypto.randomUUID().replaceAll('-', '').slice(0, 16);
