import {
  asyncScheduler,
  AsyncSubject,
  catchError,
  concat,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  merge,
  NEVER,
  type Observable,
  Subject,
  take,
  tap,
  throwError,
  throwIfEmpty,
} from 'rxjs';
import type { Call } from '../seams/call.js';
import { made$, thenMap } from '../flow/contained.js';
import { type Instructions, instructionsOf } from './instructions.js';
import { conversationLayer } from './layers/conversation.js';
import { postCallLayer } from './layers/post-call.js';
import { afterPreCall$, preCallLayer } from './layers/pre-call.js';
import { type CallOptions, givenOptions, preparedOptions } from './call-options.js';
import { type CallScope, randomId, setScope, type ToolScope } from '../seams/call-scope.js';
import { discard } from '../phases/message-builder.js';
import { isFatal, MillraceError, toMillraceError } from '../values/errors.js';
import type { AgentEvent, Listener } from '../events.js';
import { frozen, answerTextOf } from '../values/message.js';
import { type Input, readAsked, voices } from '../seams/input.js';
import type { Answer, Context, Layer } from '../seams/layer.js';
import { isInterruptible, performThrough } from '../seams/steps.js';
import {
  answerThrough,
  handedDown,
  hooksOf,
  isResumed,
  layersFor,
  layersOf,
  recordThrough,
} from '../seams/through.js';
import { noMemory } from '../values/memory.js';
import type { Model } from '../models/model.js';
import type { CallInfo, CallLabels, Reply } from '../values/reply.js';
import { abortedError, abortWhen } from './abort-when.js';
import type { View } from './callable.js';
import type { ToolkitCell } from '../tools/toolkit.js';
import { joinDemand } from '../flow/demand.js';
import { createHooks, numbering } from '../seams/hooks.js';
import { retries } from '../phases/stream-message.js';
import { createInterruption } from '../flow/interruption.js';
import { createRetryBudget } from '../models/timeouts.js';
import { nextCallId, spendBelow, toolScopeOf, waitersFor } from '../seams/tool-context.js';
import { type Spending, watchingSpending } from '../seams/spending.js';
import { type Cell, createLocals, type Perform, replayedSteps } from '../step.js';
import { type ContextValues, contextValues } from '../tools/context-key.js';
import { createTrampoline } from '../flow/trampoline.js';
import { failed$, outcome } from '../run.js';

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
  readonly options: CallOptions;
  readonly given: CallOptions;
}

export type Composition = ReturnType<typeof compose>;

/** Composes the layers of calls: once for all calls of an agent that have none of their own. */
export const compose = (use: readonly Layer[], inherited?: readonly Layer[]) => {
  const above = inherited ?? [];
  const interceptors = hooksOf(layersOf(use, above));
  const native = [preCallLayer, ...layersFor(interceptors), conversationLayer, postCallLayer];
  return {
    use,
    layers: layersOf([...native, ...use], above),
    interceptors,
  };
};

/** Makes one call: emits its `view`, completes after `postCall` or errors after `error`. Cold; unsubscribing aborts it. */
export const call$ = <Seen>(setup: CallSetup, view: View<Seen>): Observable<Seen> =>
  made$(() => {
    const call = createCall(setup);
    const { context, above, afterwards } = call;
    // The parent was interrupted, so no new call starts.
    if (above?.isOver() === true) return NEVER;
    let hasBegun = false;
    let nothing: MillraceError | undefined;
    const run$ = (replied$: Observable<Reply>): Observable<Seen> => {
      hasBegun = true;
      return observedCall$(setup.options, call, replied$, view);
    };
    if (!context.layers.some(({ record }) => record)) return run$(replyThroughLayers$(setup, call));
    const begun$ = defer(() => {
      if (hasBegun) throw openFault();
      return run$(replyThroughLayers$(setup, call));
    });
    return defer(() => recordThrough(context.layers, context, begun$)).pipe(
      throwIfEmpty(() => (nothing = openFault())),
      // Observers of the agent also see calls that could not start.
      catchError((cause: unknown) => {
        // A sub-agent that waits emits no reply.
        if (hasBegun && cause === nothing) return EMPTY;
        const error = toMillraceError(cause);
        if (hasBegun) throw error;
        return run$(throwError(() => error));
      }),
      finalize(() => {
        if (!hasBegun) afterwards.forEach((work) => work());
      }),
    );
  });

const openFault = (): MillraceError =>
  new MillraceError('invalidState', "A layer's 'open' must subscribe once.");

const observedCall$ = <Seen>(
  options: CallOptions,
  { context, above, deliver, events$, reply$, afterwards }: StartedCall,
  replied$: Observable<Reply>,
  view: View<Seen>,
): Observable<Seen> => {
  const { info: call, hooks, interruption } = context;
  const caller = above?.scope.context.interruption;
  // The parent waits for it from now on.
  const release = above && caller?.hold(above.stepId);
  let failure: MillraceError | undefined;
  const fail = (error: MillraceError): void => {
    if (!hooks.isSettled()) {
      failure = error;
      hooks.report(hooks.iteration(), { type: 'error', error });
    }
    end();
  };
  // Idempotent.
  const end = (): void =>
    deliver(() => {
      for (const subject of [reply$, events$]) {
        if (failure === undefined) subject.complete();
        else subject.error(failure);
      }
    });
  const descending$ = caller?.signal$.pipe(
    tap((interrupt) => interruption.trigger(interrupt)),
    ignoreElements(),
  );
  // The reply ends the wait for an interrupt.
  const ended$ = (
    descending$ === undefined ? replied$ : merge(descending$, replied$).pipe(take(1))
  ).pipe(
    abortWhen(options, context),
    // An outer layer may have answered it before it began.
    thenMap((reply) =>
      afterPreCall$(context, () => {
        reply$.next(complete(reply, context));
        end();
        return EMPTY;
      }),
    ),
    // Deferred: everything is torn down before the error is delivered.
    catchError((cause: unknown) =>
      defer(() => {
        const error = toMillraceError(cause);
        if (isFatal(error) && above) above.below.halt ??= error;
        return concat(
          failed$(context, error),
          defer(() => {
            fail(error);
            return EMPTY;
          }),
        );
      }),
    ),
  );
  return merge(view({ events$, reply$ }), ended$).pipe(
    finalize(() => {
      if (hooks.isSettled()) end();
      else fail(abortedError(call));
      // Outside of the delivery, which the work would wait for.
      if (afterwards.length > 0) deliver(() => afterwards.forEach((work) => work()), true);
      release?.();
    }),
  );
};

const replyThroughLayers$ = (
  setup: CallSetup,
  { context, above }: StartedCall,
): Observable<Reply> =>
  made$(() => {
    const { info: call, layers, local, scheduler } = context;
    const own = setup.answer(context);
    const asked = readAsked(setup.input, {
      ...call,
      ...local(voices),
      isResumed: isResumed(context),
    });
    local(outcome).input = asked.input;
    local(instructionsOf).own = setup.instructions;
    const answer = answerThrough(layers, context, own);
    const values = contextValues(above?.values.entries, setup.options.context);
    return answer(callOf(setup, asked, values, scheduler.now()));
  });

/** Emits the last event. */
const complete = (answered: Reply, { hooks, local }: Context): Reply => {
  const reply = frozen(withText(answered));
  const { run } = local(outcome);
  if (run !== undefined && reply.id !== run.answer.id) {
    discard({ hooks }, run.iteration, run.answer, 'stopped');
  }
  hooks.report(run?.iteration ?? reply.iterations, { type: 'postCall', reply });
  return reply;
};

/** A layer may have changed the content. */
const withText = (reply: Reply): Reply => {
  const text = answerTextOf(reply);
  return reply.text === text ? reply : { ...reply, text };
};

const callOf = (
  { model, toolkit, options }: CallSetup,
  asked: Pick<Call, 'history' | 'input'>,
  values: ContextValues,
  createdAt: number,
): Call => ({
  ...asked,
  status: 'prepared',
  model,
  toolkit,
  pinned: [],
  hidden: [],
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

interface StartedCall extends CallScope {
  readonly events$: Subject<AgentEvent>;
  /** Emits the reply after the last event, or errors. */
  readonly reply$: AsyncSubject<Reply>;
  /** Runs after the last event was delivered, or on unsubscribe. */
  readonly afterwards: readonly (() => void)[];
}

const createCall = (setup: CallSetup): StartedCall => {
  const { agentName, options, listener, given } = setup;
  const { parent, limits } = options;
  const above = parent === undefined ? undefined : toolScopeOf(parent);
  const { scope } = above ?? {};
  const caller = scope?.context;
  const speaks =
    above?.speaks === true && (caller?.info.parentId === undefined || caller.info.speaks === true);
  const { use, layers, interceptors } =
    caller === undefined
      ? setup.composition
      : compose(setup.composition.use, handedDown(caller.layers, speaks));
  const labels: CallLabels = { ...scope?.labels };
  for (const layer of use) Object.assign(labels, layer.labels);
  const call = infoOf(agentName, options, labels, above, speaks);
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
  const numbers = local(numbering);
  const nextSeq = (): number => (numbers.last += 1);
  if (scope === undefined && limits?.retryBudget !== undefined) {
    local(retries).budget = createRetryBudget(limits.retryBudget);
  }
  const afterwards: (() => void)[] = [];
  // Composed on first use: parts of a layer may keep the context, and their errors must fail the call.
  let performs: Perform | undefined;
  const ids = new Set<string>();
  const voice = speakerInterceptors;
  const context: Context = {
    info: call,
    local,
    perform: (step) => {
      if (step.kind !== 'wait' && ids.size === ids.add(step.id).size) throw repeated(step.id);
      return (performs ??= performing(context, setup.model, above))(step);
    },
    hooks: createHooks({ call, interceptors, voice, scheduler, deliver, listeners, nextSeq }),
    events$,
    scheduler,
    demand: joinDemand(options.demand, caller?.demand),
    interruption: createInterruption(scheduler, isInterruptible({ layers })),
    layers,
    whenOver: (work: () => void) => void afterwards.push(work),
  };
  const waiters = [...waitersFor(parent), call];
  const started: StartedCall = {
    ...{ context, labels, above, waiters, listeners, speakerInterceptors, deliver, cells },
    ...{ events$, reply$: new AsyncSubject<Reply>(), afterwards },
  };
  setScope(started);
  local(givenOptions).own = { ...given };
  return started;
};

const infoOf = (
  agentName: string,
  { callId, metadata }: CallOptions,
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
): Perform => {
  const through = performThrough(context.layers, context);
  if (!above) return through;
  const live = (spending: Spending): void => spendBelow(above, spending);
  const name = model?.name ?? '';
  const known = context.local(replayedSteps);
  return watchingSpending(through, name, { live, replayed: live }, known);
};

const repeated = (id: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `The call already performed a step '${id}'. Give each step a unique 'id'.`,
  );
