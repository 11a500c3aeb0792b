import { asyncScheduler, AsyncSubject, EMPTY, Subject } from 'rxjs';
import type { Call } from '../seams/call.js';
import type { Instructions } from './instructions.js';
import { conversationLayer } from './layers/conversation.js';
import { postCallLayer } from './layers/post-call.js';
import { preCallLayer } from './layers/pre-call.js';
import { type CallOptions, givenOptions, preparedOptions } from './call-options.js';
import { type CallScope, randomId, setScope, type ToolScope } from '../seams/call-scope.js';
import { MillraceError } from '../values/errors.js';
import type { AgentEvent, Listener } from '../events.js';
import type { Input } from '../seams/input.js';
import type { Answer, Context, Layer } from '../seams/layer.js';
import {
  performer,
  type PerformStep,
  isInterruptible,
  performThrough,
  stepOf,
  kernelStepOf,
} from '../seams/steps.js';
import { handedDown, hooksOf, layersFor, layersOf } from '../seams/through.js';
import { noMemory } from '../values/memory.js';
import type { Model } from '../models/model.js';
import type { CallInfo, CallLabels, Reply } from '../values/reply.js';
import type { ToolkitCell } from '../tools/toolkit.js';
import { joinDemand } from '../flow/demand.js';
import { createHooks, numbering } from '../seams/hooks.js';
import { hasLeft, observed, toObservable } from '../flow/eventual.js';
import { retries } from '../phases/stream-message.js';
import { createInterruption } from '../flow/interruption.js';
import { createRetryBudget } from '../models/timeouts.js';
import { nextCallId, spendBelow, toolScopeOf, waitersFor } from '../seams/tool-context.js';
import { type Spending, watchingSpending } from '../seams/spending.js';
import { type Cell, createLocals, type Perform, type Step } from '../step.js';
import { type ContextEntry, contextValues, type ContextValues } from '../tools/context-key.js';
import { createTrampoline } from '../flow/trampoline.js';

export interface CallSetup {
  readonly agentName: string;
  readonly instructions: Instructions | undefined;
  readonly composition: Composition;
  /** The innermost answer: `runLoop`, or its replacement. */
  readonly answer: (context: Context) => Answer;
  readonly listener: Listener;
  readonly input: Input;
  readonly model: Model | undefined;
  readonly toolkit: ToolkitCell;
  /** Values of the agent. Those of its layers override them, and those of the call override both. */
  readonly context: readonly ContextEntry[];
  readonly options: CallOptions;
  /** As the caller passed them, for the record of the call. */
  readonly given: CallOptions;
}

export type Composition = ReturnType<typeof compose>;

/** Composes the layers of calls: once for all calls of an agent that have none of their own. */
export const compose = (use: readonly Layer[], inherited: readonly Layer[] = []) => {
  const interceptors = hooksOf(layersOf(use, inherited));
  const native = [preCallLayer, ...layersFor(interceptors), conversationLayer, postCallLayer];
  return { use, layers: layersOf([...native, ...use], inherited), interceptors };
};

export interface CreatedCall extends CallScope {
  readonly values: ContextValues;
  readonly events$: Subject<AgentEvent>;
  /** Emits the reply after the last event, or errors. */
  readonly reply$: AsyncSubject<Reply>;
  /** Runs after the last event was delivered, or on unsubscribe. */
  readonly afterwards: readonly (() => void)[];
}

/** Creates the state of one call: its context, and what the calls below need of it. */
export const createCall = (setup: CallSetup): CreatedCall => {
  const { options, listener, given } = setup;
  const { parent, limits } = options;
  // The parent is the context of a tool: `above` is its tool call, `scope` the call of that tool, `caller` its context.
  const above = parent === undefined ? undefined : toolScopeOf(parent);
  const { scope } = above ?? {};
  const caller = scope?.context;
  // Whether its text is shown as that of the parent.
  const speaks =
    above?.speaks === true && (caller?.info.parentId === undefined || caller.info.speaks === true);
  const { use, layers, interceptors } =
    caller === undefined
      ? setup.composition
      : compose(setup.composition.use, handedDown(caller.layers, speaks));
  // Without those that a `single` layer replaces.
  const ownLayers = use.filter((layer) => layers.includes(layer));
  const labels: CallLabels = { ...scope?.labels };
  for (const layer of ownLayers) Object.assign(labels, layer.labels);
  const values = contextValues(
    above?.values.entries,
    setup.context,
    ...ownLayers.map(({ context: entries }) => entries),
    options.context,
  );
  const call = infoOf(setup, labels, above, speaks);
  const events$ = new Subject<AgentEvent>();
  const own: Listener = { hears: () => events$.observed, next: (event) => events$.next(event) };
  const listeners = [...new Set([own, listener, ...(scope?.listeners ?? [])])];
  const speakerInterceptors = speaks
    ? [...new Set([...interceptors, ...(scope?.speakerInterceptors ?? [])])]
    : interceptors;
  const scheduler = options.scheduler ?? caller?.scheduler ?? asyncScheduler;
  const deliver = scope?.deliver ?? createTrampoline();
  const cells = scope?.cells ?? new Map<Cell<unknown>, unknown>();
  const local = createLocals(cells);
  const nextSeq = (): number => (local(numbering).last += 1);
  if (scope === undefined && limits?.retryBudget !== undefined) {
    local(retries).budget = createRetryBudget(limits.retryBudget);
  }
  const afterwards: (() => void)[] = [];
  // Composed on first use: parts of a layer may keep the context, and their errors must fail the call.
  let through: PerformStep | undefined;
  const ids = new Set<string>();
  const heard = { listeners, speakerInterceptors, deliver };
  const refuseRepeated = ({ kind, id }: Pick<Step<unknown>, 'kind' | 'id'>): void => {
    if (kind !== 'wait' && ids.has(id)) throw repeated(id);
    ids.add(id);
  };
  const doStep: PerformStep = (step) =>
    hasLeft() ? EMPTY : (through ??= performing(context, setup.model, above))(step);
  const context: Context = {
    info: call,
    local,
    perform: (step) => {
      refuseRepeated(step);
      return observed(() => doStep(kernelStepOf(step)));
    },
    hooks: createHooks({ ...heard, call, interceptors, scheduler, nextSeq }),
    events$,
    scheduler,
    demand: joinDemand(options.demand, caller?.demand),
    interruption: createInterruption(scheduler, isInterruptible({ layers })),
    layers,
    whenOver: (work: () => void) => void afterwards.push(work),
  };
  const started: CreatedCall = {
    ...{ ...heard, context, labels, values, above, cells, waiters: [...waitersFor(parent), call] },
    ...{ events$, reply$: new AsyncSubject<Reply>(), afterwards },
  };
  setScope(started);
  local(performer).perform = (step) => {
    refuseRepeated(step);
    return doStep(step);
  };
  local(givenOptions).own = { ...given };
  return started;
};

const infoOf = (
  { agentName, options: { callId, metadata } }: CallSetup,
  labels: CallLabels,
  above: ToolScope | undefined,
  speaks: boolean,
): CallInfo => {
  const id = callId ?? (above === undefined ? randomId() : nextCallId(above));
  const parent = above?.scope.context.info;
  return Object.freeze({
    ...labels,
    rootId: parent?.rootId ?? id,
    callId: id,
    agent: Object.freeze([...(parent?.agent ?? []), agentName]),
    metadata: Object.freeze({ ...(metadata ?? parent?.metadata) }),
    ...(parent && { parentId: parent.callId, parent }),
    ...(above && { parentStep: above.stepId }),
    ...(speaks && { speaks: true }),
  });
};

const performing = (
  context: Context,
  model: Model | undefined,
  above: ToolScope | undefined,
): PerformStep => {
  const through = performThrough(context.layers, context);
  if (!above) return through;
  const spend = (spending: Spending): void => spendBelow(above, spending);
  const perform: Perform = (step) => toObservable(through(kernelStepOf(step)));
  const watched = watchingSpending(perform, context, { live: spend, replayed: spend }, model?.name);
  return (work) => watched(stepOf(work));
};

const repeated = (id: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The call already performed a step '${id}'. Give each step a unique 'id'.`,
  );

/** The call as its layers get it. */
export const callOf = (
  { model, toolkit, options }: CallSetup,
  asked: Pick<Call, 'history' | 'input'>,
  values: ContextValues,
  createdAt: number,
): Call => ({
  ...asked,
  status: 'prepared',
  model,
  toolkit,
  options: preparedOptions(options),
  values,
  memory: noMemory,
  late: [],
  instructions: undefined,
  createdAt,
  recalled: [],
  recalledPlacement: 'beforeHistory',
  found: {},
  question: undefined,
  notes: {},
  spent: {},
});
