import {
  combineLatest,
  concat,
  concatMap,
  defer,
  EMPTY,
  finalize,
  first,
  map,
  merge,
  type Observable,
  of,
  take,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import type { CallPlan } from './call-plan.js';
import type { PlannedCall } from './planned-call.js';
import type { CallScope, OpenedJournal } from './call-scope.js';
import { MillraceError } from './errors.js';
import type { Hooks } from './hooks.js';
import { readInput } from './input.js';
import { beginning, callRecord, callStep, goingOn } from './journal/call-record.js';
import { type CallSteps, callSteps } from './journal/call-steps.js';
import { unwritten } from './journal/journal.js';
import { seatStep } from './journal/seat-step.js';
import { type Memory, noMemory } from './memory.js';
import type { Message } from './message.js';
import type { CallContext } from './pipeline/call-stage.js';
import type { CallState } from './pipeline/call-state.js';
import { placed$, placeWritten$ } from './placed.js';
import { isInPlaceOfLoop } from './pipeline/loop-stages.js';
import { oneState } from './pipeline/one-state.js';
import { runLoop } from './pipeline/run-loop.js';
import { replyOf } from './pipeline/review-reply.js';
import type { Reply } from './reply.js';
import type { Holds, Interruption } from './interruption.js';
import { type Layer, layersOf, modelThrough, performThrough } from './layer.js';
import type { Step } from './step.js';
import { watchingSpending } from './spending.js';
import { createSteering, type Steering } from './steering.js';

/** Runs a call in its scope, from its place in the session to its last event, and emits the reply. */
export const perform$ = (plan: PlannedCall, scope: CallScope, hooks: Hooks): Observable<Reply> =>
  defer(() => {
    const { call, journal, interruption } = scope;
    const { session, opened } = plan;
    const input = plan.begun?.input ?? readInput(plan.input, call);
    const steps = callSteps(scope, hooks);
    const begin = (place: Omit<Place, 'input' | 'steps'>): Observable<Reply> =>
      begin$(plan, scope, hooks, { ...place, input, steps });
    const noted$ = journal === unwritten ? undefined : noted(plan, scope, steps, input);
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
    const seated$ = placed$(seat, { ...scope, hooks, input, steering }, plan.options, goesOn);
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
  { opened, given }: PlannedCall,
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
  plan: PlannedCall,
  scope: CallScope,
  hooks: Hooks,
  place: Place,
): Observable<Reply> =>
  defer(() => {
    const { input, steps, memory, steering, end = () => undefined, isSuperseded = false } = place;
    const { call, scheduler, interruption, reply$ } = scope;
    const context: CallContext = {
      call,
      hooks,
      scheduler,
      interruption,
      scope,
      steering,
      ...asks(plan, scope, hooks, steps),
      isSuperseded,
      settle: (reply) => {
        end();
        reply$.next(reply);
      },
    };
    hooks.report(0, { type: 'preCall', input });
    if (memory !== noMemory && plan.opened?.resumes !== true) {
      plan.session?.record.takeUntold().forEach((change) => hooks.report(0, change));
    }
    const loopAt = plan.pipeline.findIndex((it) => it === runLoop || isInPlaceOfLoop(it));
    const made$ = plan.pipeline
      .reduce<Observable<CallState>>(
        (state$, create, at) => state$.pipe(oneState(create, context, at < loopAt)),
        of(begun(plan, input, memory, scheduler.now())),
      )
      .pipe(
        // Whatever a stage holds is freed with the reply.
        take(1),
        map((state) => {
          if (hooks.isSettled()) return replyOf(state, 'its end');
          throw new MillraceError(
            'invalidState',
            "The pipeline needs 'completeCall', or a stage that does the same, at its end.",
          );
        }),
      );
    return scope.journal === unwritten ? made$ : merge(steps.interrupt$, made$);
  });

/** The ways of a call to the outside world, through its layers. What its steps cost is counted in its session, and in the calls above it. */
const asks = (
  { model, options, session }: CallPlan,
  scope: CallScope,
  hooks: Hooks,
  { layer: journal }: CallSteps,
): Pick<CallContext, 'perform' | 'throughLayers'> => {
  const { interruption, holds } = scope;
  const interrupt = isInterruptible(options, session, scope)
    ? [interruptLayer(interruption, holds)]
    : [];
  const ours = [...(journal === undefined ? [] : [journal]), ...interrupt];
  const layers = ours.length === 0 ? scope.layers : layersOf([...scope.layers, ...ours], []);
  const context = { ...scope, hooks };
  const { name = '' } = model ?? {};
  return {
    perform: watchingSpending(performThrough(layers, context), name, {
      live: scope.spend,
      replayed: scope.spend,
    }),
    throughLayers: modelThrough(layers, context),
  };
};

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

/** A call that nobody can interrupt needs nothing that waits for it. */
const isInterruptible = (
  { interruptOn, parent }: CallPlan['options'],
  session: CallPlan['session'],
  { replaying }: Pick<CallScope, 'replaying'>,
): boolean =>
  interruptOn !== undefined ||
  parent !== undefined ||
  session !== undefined ||
  // It may have been interrupted before.
  replaying !== undefined;

const begun = (
  plan: CallPlan,
  input: readonly Message[],
  memory: Memory,
  createdAt: number,
): CallState => ({
  plan,
  status: 'prepared',
  input,
  results: undefined,
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
  hidden: [],
  answer: undefined,
  run: undefined,
  reply: undefined,
});
