import {
  asyncScheduler,
  AsyncSubject,
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  map,
  merge,
  NEVER,
  noop,
  type Observable,
  of,
  Subject,
  take,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import type { Call } from './call/call.js';
import { type CallOptions, preparedOptions } from './call-options.js';
import { type CallContext, type OpenedJournal, randomId } from './call-context.js';
import { discard } from './discard.js';
import { MillraceError, toMillraceError } from './errors.js';
import type { AgentEvent, Listener } from './events.js';
import { frozen } from './frozen.js';
import { type Input, readInput } from './input.js';
import type { Interceptor } from './interceptor.js';
import {
  beginning,
  type CallRecord,
  callRecord,
  callStep,
  goingOn,
} from './journal/call-record.js';
import { isHalt } from './journal/halt.js';
import { unwritten } from './journal/journal.js';
import {
  type Answer,
  answerThrough,
  handedDown,
  type Layer,
  layersOf,
  modelThrough,
  performThrough,
  priorityOf,
} from './layer.js';
import { noMemory } from './memory.js';
import type { Message } from './message.js';
import type { Model } from './model.js';
import type { Reply } from './reply.js';
import type { Validator } from './schema.js';
import { abortedError, interrupts$, stopBy } from './stop-by.js';
import type { ToolkitCell } from './tools/live-toolkit.js';
import type { View } from './view.js';
import { noteWords } from './words-before.js';
import type { CallInfo } from './call-info.js';
import { joinDemand } from './demand.js';
import { createHooks } from './hooks.js';
import { createHolds, createInterruption } from './interruption.js';
import { callSteps } from './journal/call-steps.js';
import { createReplaying } from './journal/replaying.js';
import { createRetryBudget } from './models/retry-budget.js';
import { counter, placeOf } from './places.js';
import { watchingSpending } from './spending.js';
import {
  type Cell,
  createLocals,
  type Perform,
  recorded,
  replayedSteps,
  type Step,
} from './step.js';
import { contextValues } from './tools/context-key.js';
import { createTrampoline } from './trampoline.js';
import { outcome, reportBeginning } from './run.js';

/** What a call is set up from: its agent, and what its caller says. */
export interface CallSetup {
  readonly agentName: string;
  readonly interceptors: readonly Interceptor[];
  /** The layers of the house. */
  readonly native: readonly Layer[];
  /** The layers of the agent and of the call. */
  readonly use: readonly Layer[];
  /** The innermost answer: `runLoop`, or what takes its place. */
  readonly answer: (context: CallContext) => Answer;
  /** Hears every call of the agent. */
  readonly listener: Listener;
  readonly input: Input;
  readonly model: Model | undefined;
  readonly toolkit: ToolkitCell;
  readonly output: Validator | undefined;
  readonly options: CallOptions;
  /** What the caller has said, without the defaults. */
  readonly given: CallOptions;
  /** The call's own journal. Default: that of the call above. */
  readonly opened?: OpenedJournal;
  /** What a resumed call began with. */
  readonly begun?: CallRecord;
}

/**
 * Makes one call: emits what the caller wants to see of it and its sub-agents, and completes after `postCall`, or errors after `error`.
 * Cold: each subscription is a call, and unsubscribing ends it immediately.
 */
export const call$ = <Seen>(setup: CallSetup, view: View<Seen>): Observable<Seen> =>
  defer(() => {
    const { options } = setup;
    const context = createContext(setup);
    if (context.isLate) return NEVER;
    const { call, events$, reply$, deliver, hooks, interruption, above, afterwards } = context;
    const letGo = context.holdAbove();
    let failure: MillraceError | undefined;
    const fail = (error: MillraceError): void => {
      if (!hooks.isSettled()) {
        failure = error;
        hooks.report(hooks.iteration(), { type: 'error', error });
      }
      end();
    };
    // Also for those who have joined the call; a second end is nothing.
    const end = (): void =>
      deliver(() => {
        for (const seen$ of [events$, reply$]) {
          if (failure === undefined) seen$.complete();
          else seen$.error(failure);
        }
      });
    const descending$ = above?.signal$.pipe(
      tap((interrupt) => interruption.trigger(interrupt)),
      ignoreElements(),
    );
    const interrupted$ =
      options.interruptOn && interrupts$(options.interruptOn, interruption, hooks);
    const interrupting = [descending$, interrupted$].filter((source$) => source$ !== undefined);
    const replied$ = perform$(setup, context);
    return merge(
      view(context),
      // The reply ends the wait for an interrupt too.
      (interrupting.length === 0 ? replied$ : merge(...interrupting, replied$).pipe(take(1))).pipe(
        stopBy(options, context),
        tap({ complete: end }),
        // Deferred, so that all is torn down before anybody hears of the error.
        catchError((cause: unknown) =>
          defer(() => {
            const error = toMillraceError(cause);
            if (isHalt(error)) context.reportHalt(error);
            fail(error);
            return EMPTY;
          }),
        ),
        ignoreElements(),
      ),
    ).pipe(
      finalize(() => {
        if (hooks.isSettled()) end();
        else fail(abortedError(call));
        // Outside of the delivery: what is done then would else wait for it.
        if (afterwards.length > 0) deliver(() => afterwards.forEach((work) => work()), true);
        letGo();
      }),
    );
  });

/** Runs a call, from its layers to its last event, and emits the reply. */
const perform$ = (setup: CallSetup, context: CallContext): Observable<Reply> =>
  defer(() => {
    const { call, layers, local, scheduler } = context;
    const input = setup.begun?.input ?? readInput(setup.input, call);
    local(outcome).input = input;
    const native = new Set(setup.native);
    const through = (some: readonly Layer[], answer: Answer): Answer =>
      answerThrough(some, context, answer, native);
    const isOutside = (layer: Layer): boolean => priorityOf(layer) < recordedAt;
    const inner = through(
      layers.filter((layer) => !isOutside(layer)),
      setup.answer(context),
    );
    const answer = through(layers.filter(isOutside), recording(setup, context, input, inner));
    return answer(callOf(setup, input, scheduler.now())).pipe(
      take(1),
      map((reply) => completed(frozen(reply), context)),
    );
  });

/** Layers of a lower priority see a call before its journal does. */
const recordedAt = 30;

/** Records what a call begins with, before it is answered. */
const recording = (
  setup: CallSetup,
  context: CallContext,
  input: readonly Message[],
  next: Answer,
): Answer => {
  const { journal } = context;
  if (journal === unwritten) return next;
  const hasEnded = setup.opened !== undefined && journal.hasEnded === true;
  return (call) =>
    noted(setup, context, input).pipe(
      concatMap(() =>
        hasEnded ? ended$(context) : merge(context.steps.interrupt$, next(call)).pipe(take(1)),
      ),
    );
};

/** Writes down what a call begins with, and looks what came of it before. A call below another is begun by that one's. */
const noted = (
  { opened, given }: CallSetup,
  { call, steps: { begin, recall$ } }: CallContext,
  input: readonly Message[],
): Observable<unknown> => {
  if (opened === undefined) return concat(recall$, of(undefined));
  const form = opened.resumes ? goingOn : beginning(call.callId);
  const run = () => of(callRecord(call, input, given));
  const record$ = begin({ kind: 'call', id: callStep, input, run, form });
  return record$.pipe(concatMap((begun) => concat(recall$, of(begun))));
};

/** Gives the reply of a call that has ended. Nothing of it is done again, nor written, nor counted. */
const ended$ = ({ steps: { begin }, local }: CallContext): Observable<Reply> =>
  begin<Reply>({
    kind: 'reply',
    id: 'reply',
    input: undefined,
    run: () => throwError(() => noReply()),
  }).pipe(
    // It was reported before that it began.
    tap(() => (local(outcome).input = undefined)),
  );

const noReply = (): MillraceError =>
  new MillraceError('invalidState', 'The call has ended, and its journal has no reply of it.');

/** Ends the call: reports the last event, `postCall`. */
const completed = (reply: Reply, context: CallContext): Reply => {
  const { call, hooks, reply$, local } = context;
  // A layer may have answered it from further out.
  reportBeginning(context);
  const { run } = local(outcome);
  if (run !== undefined) noteWords(reply, run, call);
  reply$.next(reply);
  if (run !== undefined && reply.id !== run.answer.id) {
    discard({ hooks }, run.iteration, run.answer, 'stopped');
  }
  hooks.report(run?.iteration ?? reply.iterations, { type: 'postCall', reply });
  return reply;
};

const callOf = (
  { model, toolkit, output, options }: CallSetup,
  input: readonly Message[],
  createdAt: number,
): Call => ({
  status: 'prepared',
  input,
  model,
  toolkit,
  pinned: [],
  hidden: [],
  options: preparedOptions(options),
  onUncertain: options.onUncertain ?? 'ask',
  output,
  memory: noMemory,
  history: [],
  late: [],
  instructions: undefined,
  createdAt,
  recalled: [],
  recalledPlacement: 'beforeHistory',
  sources: [],
  retrievals: 0,
  contextPlacement: 'system',
  question: undefined,
  notes: {},
  spent: {},
});

const twice = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `There is a call '${callId}' already in the call that it belongs to. Give each an id of its own, or none.`,
  );

const listenersOf = (opened: OpenedJournal | undefined): readonly Listener[] =>
  opened?.journal.listener === undefined ? [] : [opened.journal.listener];

/** Makes the context of a call: at the root, or below the tool that makes it. */
const createContext = ({
  agentName,
  options,
  listener,
  interceptors,
  native,
  use,
  opened,
  model,
  begun,
}: CallSetup): CallContext => {
  const { parent, callId, demand, scheduler, metadata, approve, interruptOn } = options;
  const { context: values, retryBudget = 10, speaks = false } = options;
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
  const sessionId = use.findLast(({ info }) => info)?.info?.sessionId ?? scope?.call.sessionId;
  const ownScheduler = scheduler ?? scope?.scheduler ?? asyncScheduler;
  const isHeard = speaks && (scope?.call.parentId === undefined || scope.call.speaks === true);
  const call: CallInfo = Object.freeze({
    rootId: scope?.call.rootId ?? id,
    callId: id,
    agent: Object.freeze([...(scope?.call.agent ?? []), agentName]),
    metadata: Object.freeze({ ...(metadata ?? scope?.call.metadata) }),
    ...(scope === undefined ? {} : { parentId: scope.call.callId }),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(isHeard && { speaks: true }),
  });
  const afterwards: (() => void)[] = [];
  const base = {
    call,
    events$,
    reply$: new AsyncSubject<Reply>(),
    interceptors,
    interruption: createInterruption(resumes && journal.isWritten?.(`${id}/open`) === true),
    isInterruptible:
      interruptOn !== undefined ||
      parent !== undefined ||
      // It may have been interrupted before.
      resumes ||
      use.length > 0,
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
    reportHalt: (error: MillraceError) => above?.haltBy(error),
    spend: above?.spend,
    afterwards,
    whenOver: (work: () => void) => void afterwards.push(work),
    cells,
    local: createLocals(cells),
    forks: begun?.forks ?? scope?.forks ?? [],
    lineage: [...(scope?.lineage ?? []), call],
  };
  const hooks = createHooks(base);
  const steps = callSteps(base, hooks);
  if (journal !== unwritten) base.local(recorded).by = steps;
  const whole = layersOf(
    [
      ...native,
      ...use,
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
    throughLayers: (asked) => throughLayers(asked),
  };
  const { spend } = base;
  const composed = (): Perform => {
    const through = performThrough(whole, context);
    return spend === undefined
      ? through
      : watchingSpending(
          through,
          model?.name ?? '',
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
  const throughLayers = (asked: Model): Model => (models ??= modelThrough(whole, context))(asked);
  return context;
};

const repeated = (id: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The call has performed a step '${id}' already. Give each step an 'id' of its own.`,
  );

/** Cuts the step under way when the call is interrupted, and each further one immediately. Steps without `cut`, such as saving, complete. */
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
