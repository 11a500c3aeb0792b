import { AsyncSubject, asyncScheduler, noop, Subject } from 'rxjs';
import type { CallInfo } from './call-info.js';
import type { CallOptions } from './call-options.js';
import { joinDemand } from './demand.js';
import { MillraceError } from './errors.js';
import type { AgentEvent, Listener } from './events.js';
import type { Interceptor } from './interceptor.js';
import { handedDown, type Layer, layersOf } from './layer.js';
import { type Cell, createLocals } from './step.js';
import { createHolds, createInterruption } from './interruption.js';
import type { Fork } from './journal/call-record.js';
import { unwritten } from './journal/journal.js';
import { createReplaying } from './journal/replaying.js';
import { createRetryBudget } from './models/retry-budget.js';
import type { SessionRecord } from './sessions/session-records.js';
import { contextValues } from './tools/context-key.js';
import { createTrampoline } from './trampoline.js';
import { counter, placeOf } from './places.js';
import { type CallScope, type OpenedJournal, randomId } from './call-scope.js';

const twice = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `There is a call '${callId}' already in the call that it belongs to. Give each an id of its own, or none.`,
  );

const listenersOf = (opened: OpenedJournal | undefined): readonly Listener[] =>
  opened?.journal.listener === undefined ? [] : [opened.journal.listener];

/** What the scope of a call is made of. */
export interface ScopeInit {
  readonly agentName: string;
  readonly options: CallOptions;
  readonly sessionId: string | undefined;
  /** Hears every call of the agent. */
  readonly listener: Listener;
  readonly interceptors: readonly Interceptor[];
  /** The call's own layers. */
  readonly layers?: readonly Layer[];
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
  layers = [],
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
    interruptOn,
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
  const cells = scope?.cells ?? new Map<Cell<unknown>, unknown>();
  if (journal !== unwritten) {
    if (family.has(id)) throw twice(id);
    family.add(id);
  }
  const session = sessionId ?? scope?.call.sessionId;
  const ownScheduler = scheduler ?? scope?.scheduler ?? asyncScheduler;
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
    isInterruptible:
      interruptOn !== undefined ||
      parent !== undefined ||
      sessionId !== undefined ||
      // It may have been interrupted before.
      resumes,
    holds: createHolds(ownScheduler),
    holdAbove: () => above?.hold() ?? noop,
    demand: joinDemand(demand, opened?.journal.demand, scope?.demand),
    scheduler: ownScheduler,
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
    spend:
      record === undefined && above === undefined
        ? undefined
        : (spending) => {
            record?.spend(spending.usage);
            above?.spend(spending);
          },
    layers: layersOf(layers, handedDown(scope?.layers ?? [], isHeard)),
    cells,
    local: createLocals(cells),
    forks: forks ?? scope?.forks ?? [],
    lineage: [...(scope?.lineage ?? []), call],
  };
};
