import {
  catchError,
  combineLatest,
  concat,
  concatMap,
  defer,
  EMPTY,
  finalize,
  first,
  ignoreElements,
  map,
  merge,
  NEVER,
  noop,
  type Observable,
  of,
  take,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import { outcome } from './call/answer.js';
import type { Call } from './call/call.js';
import type { CallOptions } from './call-options.js';
import { splitOptions } from './call-options.js';
import type { CallContext, CallScope, OpenedJournal } from './call-scope.js';
import { createScope } from './create-scope.js';
import { discard } from './discard.js';
import { MillraceError, toMillraceError } from './errors.js';
import type { Listener } from './events.js';
import { frozen } from './frozen.js';
import { createHooks, type Hooks } from './hooks.js';
import { type Input, readInput } from './input.js';
import type { Interceptor } from './interceptor.js';
import type { Holds, Interruption } from './interruption.js';
import {
  beginning,
  type CallRecord,
  callRecord,
  callStep,
  goingOn,
} from './journal/call-record.js';
import { type CallSteps, callSteps } from './journal/call-steps.js';
import { isHalt } from './journal/halt.js';
import { unwritten } from './journal/journal.js';
import { seatStep } from './journal/seat-step.js';
import {
  type Answer,
  answerThrough,
  type Layer,
  layersOf,
  modelThrough,
  performThrough,
} from './layer.js';
import { type Memory, noMemory } from './memory.js';
import type { Message } from './message.js';
import type { Model } from './model.js';
import { placed$, placeWritten$ } from './placed.js';
import type { Reply } from './reply.js';
import type { Validator } from './schema.js';
import type { Seat } from './seats.js';
import type { SessionRecord } from './sessions/session-records.js';
import { watchingSpending } from './spending.js';
import { createSteering, type Steering } from './steering.js';
import type { Step } from './step.js';
import { abortedError, interrupts$, stopBy } from './stop-by.js';
import type { ToolkitCell } from './tools/live-toolkit.js';
import type { View } from './view.js';
import { noteWords } from './words-before.js';

/** What a call is set up from: its agent, what its caller says, and its place in a session. */
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
  /** The names of tools that are shown whatever is selected. */
  readonly pinned: readonly string[];
  readonly output: Validator | undefined;
  /** Whether the call itself says what the answer must be, and not only its agent. */
  readonly ownOutput: boolean;
  readonly options: CallOptions;
  /** What the caller has said, without the defaults. */
  readonly given: CallOptions;
  /** Where the call stands in its session; a call without a session remembers nothing. */
  readonly session:
    { readonly seat: Seat; readonly memory: Memory; readonly record: SessionRecord } | undefined;
  /** The call's own journal. Default: that of the call above. */
  readonly opened?: OpenedJournal;
  /** What a resumed call began with. */
  readonly begun?: CallRecord;
}

/**
 * Makes one call: emits what the caller wants to see of it and of the calls below it, and completes behind
 * `postCall`, or errors behind `error`. Cold: each subscription is a call of its own, and unsubscribing
 * ends it at once.
 */
export const call$ = <Seen>(setup: CallSetup, view: View<Seen>): Observable<Seen> =>
  defer(() => {
    const { agentName, options, session, listener, interceptors, opened } = setup;
    const layers = [...setup.native, ...setup.use];
    const sessionId = session?.seat.sessionId;
    const record = session?.record;
    const init = {
      ...{ agentName, options, sessionId, listener, interceptors, layers, opened, record },
      forks: setup.begun?.forks,
    };
    const scope = createScope(init);
    if (scope.isLate) return NEVER;
    const { call, events$, reply$, deliver, interruption, above } = scope;
    const letGo = scope.holdAbove();
    const hooks = createHooks({ ...scope, interceptors });
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
    const replied$ = perform$(setup, scope, hooks);
    return merge(
      view(scope),
      // The reply ends the wait for an interrupt too.
      (interrupting.length === 0 ? replied$ : merge(...interrupting, replied$)).pipe(
        take(1),
        stopBy(options, scope),
        tap({ complete: end }),
        // Deferred, so that all is torn down before anybody hears of the error.
        catchError((cause: unknown) =>
          defer(() => {
            const error = toMillraceError(cause);
            if (isHalt(error)) scope.reportHalt(error);
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
        // Outside of the delivery: what the next call does would else wait for it.
        deliver(() => session?.seat.wake(call), true);
        letGo();
      }),
    );
  });

/** Runs a call in its scope, from its place in the session to its last event, and emits the reply. */
const perform$ = (setup: CallSetup, scope: CallScope, hooks: Hooks): Observable<Reply> =>
  defer(() => {
    const { call, journal, interruption } = scope;
    const { session, opened } = setup;
    const input = setup.begun?.input ?? readInput(setup.input, call);
    const steps = callSteps(scope, hooks);
    const begin = (place: Omit<Place, 'input' | 'steps'>): Observable<Reply> =>
      begin$(setup, scope, hooks, { ...place, input, steps });
    const noted$ = journal === unwritten ? undefined : noted(setup, scope, steps, input);
    if (noted$ !== undefined && opened !== undefined && journal.hasEnded === true) {
      return noted$.pipe(concatMap(() => ended$(steps, scope, hooks)));
    }
    if (session === undefined) {
      const bare = { memory: noMemory };
      return noted$ === undefined ? begin(bare) : noted$.pipe(concatMap(() => begin(bare)));
    }
    const { seat, memory, record } = session;
    const steering = createSteering(call);
    const end = (): void => {
      steering.close();
      seat.leave(call);
    };
    const goesOn = steps.isWritten('open') && !steps.isWritten(seatStep);
    const seated$ = placed$(seat, { ...scope, hooks, input, steering }, setup.options, goesOn);
    // The place is taken first: calls run in the order in which they were made.
    const kept$ =
      noted$ === undefined
        ? seated$
        : combineLatest([seated$, arrived$(noted$, opened)]).pipe(
            concatMap(([seated]) => placeWritten$(seated, steps)),
          );
    return kept$.pipe(
      first(({ isOver }) => isOver),
      concatMap(({ as, message }) => {
        if (as === 'interrupted') {
          interruption.trigger(message === undefined ? {} : { message });
          // It has not been a part of the conversation.
          return begin({ memory: noMemory, steering, end });
        }
        record.begin(journal === unwritten ? undefined : call.callId);
        return begin({ memory, steering, end, isSuperseded: as === 'superseded' });
      }),
      finalize(end),
    );
  });

/** Whoever comes behind a call in its session may begin: it has its place, or waits for it. */
const arrived$ = <T>(noted$: Observable<T>, opened: OpenedJournal | undefined): Observable<T> =>
  defer(() => {
    opened?.hasArrived?.();
    return noted$;
  });

/** Writes down what a call begins with, and looks what came of it before. A call below another is begun by that one's. */
const noted = (
  { opened, given }: CallSetup,
  { call }: CallScope,
  { begin, recall$ }: CallSteps,
  input: readonly Message[],
): Observable<unknown> => {
  if (opened === undefined) return concat(recall$, of(undefined));
  const form = opened.resumes ? goingOn : beginning(call.callId);
  const run = () => of(callRecord(call, input, given));
  const record$ = begin({ kind: 'call', id: callStep, input, run, form });
  return record$.pipe(concatMap((begun) => concat(recall$, of(begun))));
};

/** Gives the reply of a call that has ended. Nothing of it is done again, nor written, nor counted. */
const ended$ = (
  { begin }: CallSteps,
  { reply$ }: Pick<CallScope, 'reply$'>,
  hooks: Hooks,
): Observable<Reply> =>
  begin<Reply>({
    kind: 'reply',
    id: 'reply',
    input: undefined,
    run: () => throwError(() => noReply()),
  }).pipe(
    tap((reply) => {
      reply$.next(reply);
      hooks.report(reply.iterations, { type: 'postCall', reply });
    }),
  );

const noReply = (): MillraceError =>
  new MillraceError('invalidState', 'The call has ended, and its journal has no reply of it.');

/** What a call brings from its session. */
interface Place {
  readonly input: readonly Message[];
  readonly steps: CallSteps;
  readonly memory: Memory;
  readonly steering?: Steering;
  /** Gives the place in the session on. */
  readonly end?: () => void;
  /** A later call has made it void while it waited: it is only to be remembered. */
  readonly isSuperseded?: boolean;
}

const begin$ = (
  setup: CallSetup,
  scope: CallScope,
  hooks: Hooks,
  place: Place,
): Observable<Reply> => {
  const { input, steps, memory, end = noop } = place;
  const { session, opened } = setup;
  hooks.report(0, { type: 'preCall', input });
  if (memory !== noMemory && opened?.resumes !== true) {
    session?.record.takeUntold().forEach((change) => hooks.report(0, change));
  }
  const context = contextOf(setup, scope, hooks, place);
  const house = new Set(setup.native);
  const answer = answerThrough(context.layers, context, setup.answer(context), house);
  const made$ = answer(callOf(setup, input, memory, scope.scheduler.now())).pipe(
    take(1),
    map((reply) => completed(frozen(reply), setup, context, end)),
  );
  return scope.journal === unwritten ? made$ : merge(steps.interrupt$, made$);
};

/** Ends the call: gives its place in the session on, and reports the last event, `postCall`. */
const completed = (
  reply: Reply,
  { session }: CallSetup,
  { call, hooks, reply$, local }: CallContext,
  end: () => void,
): Reply => {
  const { run, isRemembered = false } = local(outcome);
  if (run !== undefined) noteWords(reply, run, call);
  session?.record.end(call.callId, reply, isRemembered);
  end();
  reply$.next(reply);
  if (run !== undefined && reply.id !== run.answer.id) {
    discard({ hooks }, run.iteration, run.answer, 'stopped');
  }
  hooks.report(run?.iteration ?? reply.iterations, { type: 'postCall', reply });
  return reply;
};

/** A call with its ways to the outside world, through its layers. What its steps cost is counted in its session, and in the calls above it. */
const contextOf = (
  setup: CallSetup,
  scope: CallScope,
  hooks: Hooks,
  { steps, steering, isSuperseded = false }: Place,
): CallContext => {
  const { interruption, holds } = scope;
  const ours = [
    ...(steps.layer === undefined ? [] : [steps.layer]),
    ...(scope.isInterruptible ? [interruptLayer(interruption, holds)] : []),
    ...(isSuperseded ? [superseding(interruption)] : []),
  ];
  const layers = ours.length === 0 ? scope.layers : layersOf([...scope.layers, ...ours], []);
  const context: CallContext = {
    ...scope,
    layers,
    hooks,
    steering,
    interceptors: setup.interceptors,
    perform: (step) => perform(step),
    throughLayers: (model) => throughLayers(model),
  };
  const { spend } = scope;
  const performs = performThrough(layers, context);
  const perform =
    spend === undefined
      ? performs
      : watchingSpending(performs, setup.model?.name ?? '', { live: spend, replayed: spend });
  const throughLayers = modelThrough(layers, context);
  return context;
};

/** A later call has made this one void while it waited: its input is guarded and remembered, and nothing else happens. */
const superseding = ({ trigger }: Pick<Interruption, 'trigger'>): Layer => ({
  name: 'superseded',
  priority: 56,
  call: () => (next) => (call) => {
    trigger({});
    return next(call);
  },
});

/**
 * Cuts the step under way when the call is interrupted, and each further one immediately, so that the run ends by itself. What has no `cut`, such as saving, runs
 * to its end.
 */
const interruptLayer = (
  interruption: Pick<Interruption, 'current' | 'signal$'>,
  holds: Pick<Holds, 'none$'>,
): Layer => ({
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

const callOf = (
  { model, toolkit, pinned, output, options }: CallSetup,
  input: readonly Message[],
  memory: Memory,
  createdAt: number,
): Call => ({
  status: 'prepared',
  input,
  model,
  toolkit,
  pinned,
  hidden: [],
  options: splitOptions(options).prepared,
  onUncertain: options.onUncertain ?? 'ask',
  output,
  memory,
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
