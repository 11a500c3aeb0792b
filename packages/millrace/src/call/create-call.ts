import { asyncScheduler, AsyncSubject, EMPTY, Subject } from 'rxjs';
import type { Call } from '../seams/call.js';
import type { Instructions } from './instructions.js';
import { type CallOptions, givenOptions, preparedOptions } from './call-options.js';
import { type CallScope, randomId, setScope, type ToolScope } from '../seams/call-scope.js';
import { MillraceError } from '../values/errors.js';
import type { AgentEvent, Listener } from '../events.js';
import type { Input } from '../seams/input.js';
import type { Answer, Context } from '../seams/layer.js';
import {
  performer,
  type KernelPerform,
  isInterruptible,
  performThrough,
  stepOf,
  kernelStepOf,
} from '../seams/steps.js';
import { noMemory } from '../values/memory.js';
import type { Model } from '../models/model.js';
import type { CallInfo, CallLabels, Reply } from '../values/reply.js';
import type { ToolkitCell } from '../tools/toolkit.js';
import { joinDemand } from '../flow/demand.js';
import { createHooks, numbering } from '../seams/hooks.js';
import { hasLeft, deferWork, toObservable } from '../flow/eventual.js';
import { retries } from '../phases/stream-message.js';
import { createInterruption } from '../flow/interruption.js';
import { createRetryBudget } from '../models/timeouts.js';
import { nextCallId, spendBelow, toolScopeOf, waitersFor } from '../seams/tool-context.js';
import { type Spending, watchingSpending } from '../seams/spending.js';
import { type Cell, createLocals, type Locals, type Perform, type Step } from '../step.js';
import { type ContextEntry, contextValues, type ContextValues } from '../tools/context-key.js';
import { createTrampoline } from '../flow/trampoline.js';
import { handedDown, type Composition, compose } from './compose.js';

export interface CallSetup {
  readonly agentName: string;
  readonly instructions: Instructions | undefined;
  readonly composition: Composition;
  /** The innermost answer: `runLoop`, or its replacement. */
  readonly createAnswer: (context: Context) => Answer;
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
  const { options, listener, model } = setup;
  // The option `parent` is the context of a tool: that tool call makes this call.
  const parentTool = options.parent === undefined ? undefined : toolScopeOf(options.parent);
  const { scope: parentScope } = parentTool ?? {};
  const parentCall = parentScope?.context;
  const speaks = speaksForParent(parentTool);
  // `use`: its own layers, as listed. `layers`: those, inherited ones and those of the kernel, in order.
  const { use, layers, interceptors } =
    parentCall === undefined
      ? setup.composition
      : compose(setup.composition.use, handedDown(parentCall.layers, speaks));
  // `use` without those that a `single` layer of the same name has replaced.
  const ownLayers = use.filter((layer) => layers.includes(layer));
  const labels: CallLabels = { ...parentScope?.labels };
  for (const layer of ownLayers) Object.assign(labels, layer.labels);
  const values = contextValues(
    parentTool?.values.entries,
    setup.context,
    ...ownLayers.map(({ context: entries }) => entries),
    options.context,
  );
  const info = infoOf(setup, labels, parentTool, speaks);
  const scheduler = options.scheduler ?? parentCall?.scheduler ?? asyncScheduler;
  // A call and all calls below it are a family: it shares cells, and delivers its events one at a time.
  const familyCells = parentScope?.familyCells ?? new Map<Cell<unknown>, unknown>();
  const deliver = parentScope?.deliver ?? createTrampoline();
  // `local(cell)`: the mutable value of a cell, made on first use, for the call or for the family.
  const local = createLocals(familyCells);
  const nextSeq = (): number => (local(numbering).last += 1);
  // A cell of the family: the outermost call sets the budget of all.
  if (parentScope === undefined && options.limits?.retryBudget !== undefined) {
    local(retries).budget = createRetryBudget(options.limits.retryBudget);
  }
  const events$ = new Subject<AgentEvent>();
  const own: Listener = { hears: () => events$.observed, next: (event) => events$.next(event) };
  const listeners = [...new Set([own, listener, ...(parentScope?.listeners ?? [])])];
  const speakerInterceptors = speaks
    ? [...new Set([...interceptors, ...(parentScope?.speakerInterceptors ?? [])])]
    : interceptors;
  // The receivers of its events.
  const audience = { listeners, speakerInterceptors, deliver };
  const afterwards: (() => void)[] = [];
  const context: Context = {
    info,
    local,
    perform: createPerform(local, () => performAndCount(context, model, parentTool)),
    hooks: createHooks({ ...audience, call: info, interceptors, scheduler, nextSeq }),
    events$,
    scheduler,
    demand: joinDemand(options.demand, parentCall?.demand),
    interruption: createInterruption(scheduler, isInterruptible({ layers })),
    layers,
    whenOver: (work: () => void) => void afterwards.push(work),
  };
  // The calls that wait for this one: a session refuses a call that would have to wait for one of them.
  const waiters = [...waitersFor(options.parent), info];
  const scope: CallScope = { ...audience, context, labels, parentTool, familyCells, waiters };
  setScope(scope);
  // For the journal.
  local(givenOptions).own = { ...setup.given };
  return { ...scope, values, events$, reply$: new AsyncSubject<Reply>(), afterwards };
};

/** Whether the text of a call is shown as that of its parent (`speaking()`): it speaks, and so does each call above it but the outermost. */
const speaksForParent = (parentTool: ToolScope | undefined): boolean => {
  const parent = parentTool?.scope.context.info;
  return parentTool?.speaks === true && (parent?.parentId === undefined || parent.speaks === true);
};

const infoOf = (
  { agentName, options: { callId, metadata } }: CallSetup,
  labels: CallLabels,
  parentTool: ToolScope | undefined,
  speaks: boolean,
): CallInfo => {
  const id = callId ?? (parentTool === undefined ? randomId() : nextCallId(parentTool));
  const parent = parentTool?.scope.context.info;
  return Object.freeze({
    ...labels,
    rootId: parent?.rootId ?? id,
    callId: id,
    agent: Object.freeze([...(parent?.agent ?? []), agentName]),
    metadata: Object.freeze({ ...(metadata ?? parent?.metadata) }),
    ...(parent && { parentId: parent.callId, parent }),
    ...(parentTool && { parentStep: parentTool.stepId }),
    ...(speaks && { speaks: true }),
  });
};

/** Two ways to perform the same steps: returns that of layers, an Observable, and sets that of the kernel (`perform` of steps.ts), an `Eventual`. */
const createPerform = (local: Locals, composeLayers: () => KernelPerform): Perform => {
  const ids = new Set<string>();
  // When it is performed, not when it is subscribed to: a layer may repeat a step. Waits are not recorded, so their ids may repeat.
  const refuseRepeated = ({ kind, id }: Pick<Step<unknown>, 'kind' | 'id'>): void => {
    if (kind !== 'wait' && ids.has(id)) throw repeated(id);
    ids.add(id);
  };
  // Composed by the first step: an error of a layer must fail the call, not its creation.
  let composed: KernelPerform | undefined;
  // `hasLeft`: the subscriber for which this code runs has unsubscribed.
  const through: KernelPerform = (step) =>
    hasLeft() ? EMPTY : (composed ??= composeLayers())(step);
  local(performer).perform = (step) => {
    refuseRepeated(step);
    return through(step);
  };
  return (step) => {
    refuseRepeated(step);
    return deferWork(() => through(kernelStepOf(step)));
  };
};

/** Steps run through the layers. What they cost, now or when they were recorded, also counts for the tool that makes the call. */
const performAndCount = (
  context: Context,
  model: Model | undefined,
  parentTool: ToolScope | undefined,
): KernelPerform => {
  const through = performThrough(context.layers, context);
  if (!parentTool) return through;
  const spend = (spending: Spending): void => spendBelow(parentTool, spending);
  // `watchingSpending` wraps steps as layers see them. Replayed ones cost the tool the same; `settle` adds its sum to the run of the parent.
  const perform: Perform = (step) => toObservable(through(kernelStepOf(step)));
  const counted = watchingSpending(perform, context, { live: spend, replayed: spend }, model?.name);
  return (step) => counted(stepOf(step));
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
