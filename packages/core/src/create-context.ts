import {
  AsyncSubject,
  asyncScheduler,
  concatMap,
  defer,
  EMPTY,
  noop,
  Subject,
  takeUntil,
} from 'rxjs';
import { type CallContext, type OpenedJournal, randomId } from './call-context.js';
import type { CallInfo } from './call-info.js';
import type { CallOptions } from './call-options.js';
import { joinDemand } from './demand.js';
import { MillraceError } from './errors.js';
import type { AgentEvent, Listener } from './events.js';
import { createHooks } from './hooks.js';
import type { Interceptor } from './interceptor.js';
import { createHolds, createInterruption } from './interruption.js';
import type { Fork } from './journal/call-record.js';
import { callSteps } from './journal/call-steps.js';
import { unwritten } from './journal/journal.js';
import { createReplaying } from './journal/replaying.js';
import { handedDown, type Layer, layersOf, modelThrough, performThrough } from './layer.js';
import { createRetryBudget } from './models/retry-budget.js';
import { counter, placeOf } from './places.js';
import type { Model } from './model.js';
import type { Reply } from './reply.js';
import type { SessionRecord } from './sessions/session-records.js';
import { type Spending, watchingSpending } from './spending.js';
import { createSteering } from './steering.js';
import { type Cell, createLocals, type Perform, replayedSteps, type Step } from './step.js';
import { contextValues } from './tools/context-key.js';
import { createTrampoline } from './trampoline.js';

const twice = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `There is a call '${callId}' already in the call that it belongs to. Give each an id of its own, or none.`,
  );

const listenersOf = (opened: OpenedJournal | undefined): readonly Listener[] =>
  opened?.journal.listener === undefined ? [] : [opened.journal.listener];

/** What a context is made of. */
export interface ContextInit {
  readonly agentName: string;
  readonly options: CallOptions;
  readonly sessionId: string | undefined;
  /** Hears every call of the agent. */
  readonly listener: Listener;
  readonly interceptors: readonly Interceptor[];
  /** The call's own layers. */
  readonly layers?: readonly Layer[];
  /** Some of them are not native: one of these may interrupt the call. */
  readonly isLayered?: boolean;
  readonly opened?: OpenedJournal | undefined;
  readonly record?: SessionRecord | undefined;
  /** The name of the model that answers, unless a value names another. */
  readonly modelName?: string | undefined;
  /** Of an outermost call that is a fork. */
  readonly forks?: readonly Fork[] | undefined;
}

/** Makes the context of a call: at the root, or below the tool that makes it. */
export const createContext = ({
  agentName,
  options,
  sessionId,
  listener,
  interceptors,
  layers = [],
  opened,
  record,
  modelName = '',
  forks,
  isLayered = false,
}: ContextInit): CallContext => {
  const {
    parent,
    callId,
    demand,
    scheduler,
    metadata,
    context: values,
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
  const base = {
    call,
    events$,
    reply$: new AsyncSubject<Reply>(),
    interceptors,
    steering: sessionId === undefined ? undefined : createSteering(call),
    interruption: createInterruption(resumes && journal.isWritten?.(`${id}/open`) === true),
    isInterruptible:
      interruptOn !== undefined ||
      parent !== undefined ||
      sessionId !== undefined ||
      // It may have been interrupted before.
      resumes ||
      isLayered,
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
    values: contextValues(scope?.values.entries, values),
    approvers: [...(approve === undefined ? [] : [approve]), ...(scope?.approvers ?? [])],
    above: scope?.interruption,
    isLate: above?.isOver() ?? false,
    voice: isHeard ? [...interceptors, ...(scope?.voice ?? [])] : interceptors,
    record: record ?? scope?.record,
    reportHalt: (error: MillraceError) => above?.haltBy(error),
    spend:
      record === undefined && above === undefined
        ? undefined
        : (spending: Spending) => {
            record?.spend(spending.usage);
            above?.spend(spending);
          },
    cells,
    local: createLocals(cells),
    forks: forks ?? scope?.forks ?? [],
    lineage: [...(scope?.lineage ?? []), call],
  };
  const hooks = createHooks(base);
  const steps = callSteps(base, hooks);
  const whole = layersOf(
    [
      ...layers,
      ...(steps.layer === undefined ? [] : [steps.layer]),
      ...(base.isInterruptible ? [interrupting(base)] : []),
    ],
    handedDown(scope?.layers ?? [], isHeard),
  );
  const context: CallContext = {
    ...base,
    hooks,
    steps,
    layers: whole,
    perform: (step) => perform(step),
    throughLayers: (model) => throughLayers(model),
  };
  const { spend } = base;
  const composed = (): Perform => {
    const through = performThrough(whole, context);
    return spend === undefined
      ? through
      : watchingSpending(
          through,
          modelName,
          { live: spend, replayed: spend },
          base.local(replayedSteps),
        );
  };
  // Composed with the first step and the first model: the parts of a layer may keep the context, and what they throw fails the call.
  let performs: Perform | undefined;
  const ids = new Set<string>();
  const perform: Perform = (step) => {
    if (step.kind !== 'wait' && ids.size === ids.add(step.id).size) throw repeated(step.id);
    return (performs ??= composed())(step);
  };
  let models: ((model: Model) => Model) | undefined;
  const throughLayers = (model: Model): Model => (models ??= modelThrough(whole, context))(model);
  return context;
};

const repeated = (id: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The call has performed a step '${id}' already. Give each step an 'id' of its own.`,
  );

/**
 * Cuts the step under way when the call is interrupted, and each further one immediately, so that the run ends by itself. What has no `cut`, such as saving, runs
 * to its end.
 */
const interrupting = ({
  interruption,
  holds,
}: Pick<CallContext, 'interruption' | 'holds'>): Layer => ({
  name: 'interrupt',
  priority: 40,
  step:
    () =>
    (next) =>
    <T>(step: Step<T>) =>
      step.cut === undefined && step.optional !== true
        ? next(step)
        : defer(() =>
            interruption.current === undefined
              ? next(step).pipe(
                  takeUntil(interruption.signal$.pipe(concatMap(() => holds.none$(step.id)))),
                )
              : EMPTY,
          ),
});
