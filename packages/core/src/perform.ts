import {
  concatMap,
  defer,
  finalize,
  forkJoin,
  identity,
  ignoreElements,
  map,
  type Observable,
  of,
  race,
  take,
  tap,
  throwError,
} from 'rxjs';
import type { CallPlan } from './call-plan.js';
import type { PlannedCall } from './planned-call.js';
import type { CallScope } from './call-scope.js';
import { MillraceError } from './errors.js';
import type { Hooks } from './hooks.js';
import { readInput } from './input.js';
import { beginning, callRecord, callStep, goingOn } from './journal/call-record.js';
import { unwritten } from './journal/journal.js';
import { type RunStep, type StepListener, stepsOf } from './journal/step.js';
import { type Memory, noMemory } from './memory.js';
import type { Message } from './message.js';
import type { CallContext } from './pipeline/call-stage.js';
import type { CallState } from './pipeline/call-state.js';
import { isInPlaceOfLoop } from './pipeline/loop-stages.js';
import { oneState } from './pipeline/one-state.js';
import { runLoop } from './pipeline/run-loop.js';
import { replyForm, replyOf } from './pipeline/review-reply.js';
import type { Reply } from './reply.js';
import { createSteering, type Steering } from './steering.js';

/** Runs a call in its scope, from its place in the session to its last event, and emits the reply. */
export const perform$ = (plan: PlannedCall, scope: CallScope, hooks: Hooks): Observable<Reply> =>
  defer(() => {
    const { call, interruption } = scope;
    const { session, begun: before, opened } = plan;
    const step$ = stepsOf(scope.journal, call.callId, told(scope, hooks));
    const input = before?.input ?? readInput(plan.input, call);
    const isWritten = (step: string): boolean =>
      scope.journal.isWritten?.(`${call.callId}/${step}`) === true;
    const noted$ =
      opened &&
      step$(
        callStep,
        () => of(callRecord(call, input, plan.given)),
        opened.resumes ? goingOn : beginning(call.callId),
      );
    const begin = (place: Omit<Place, 'input' | 'step$'>): Observable<Reply> =>
      begin$(plan, scope, hooks, { ...place, input, step$ });
    if (noted$ !== undefined && opened?.resumes === false && isWritten(callStep)) {
      return noted$.pipe(ignoreElements());
    }
    if (noted$ !== undefined && scope.journal.hasEnded === true) {
      return noted$.pipe(concatMap(() => ended$(step$, scope, hooks)));
    }
    if (session === undefined) {
      const bare = { memory: noMemory };
      return noted$ === undefined ? begin(bare) : noted$.pipe(concatMap(() => begin(bare)));
    }
    const { seat, memory, record } = session;
    const { onBusy = 'reject', maxQueue = 16 } = plan.options;
    const steering = createSteering(call);
    const end = (): void => {
      steering.close();
      seat.leave(call);
    };
    const seated$ = race(
      seat.take$({ ...scope, hooks, input, steering }, onBusy, maxQueue),
      interruption.cut$.pipe(map(() => undefined)),
    ).pipe(take(1));
    // The place is taken first: calls run in the order in which they were made.
    const ready$ =
      noted$ === undefined ? seated$ : forkJoin([seated$, noted$]).pipe(map(([seated]) => seated));
    return ready$.pipe(
      concatMap((seated) => {
        // A call that was interrupted while it waited has not been a part of the conversation.
        const own = seated === undefined ? noMemory : memory;
        const isWrittenDown = scope.journal !== unwritten;
        if (seated !== undefined) record.begin(isWrittenDown ? call.callId : undefined);
        const isSuperseded = seated === 'superseded';
        return begin({ memory: own, steering, end, isSuperseded });
      }),
      finalize(end),
    );
  });

/** Gives the reply of a call that has ended. Nothing of it is done again, nor written, nor counted. */
const ended$ = (
  step$: RunStep,
  { reply$ }: Pick<CallScope, 'reply$'>,
  hooks: Hooks,
): Observable<Reply> =>
  step$('reply', () => throwError(() => noReply()), replyForm).pipe(
    tap((reply) => {
      reply$.next(reply);
      hooks.report(reply.iterations, { type: 'postCall', reply });
    }),
  );

const noReply = (): MillraceError =>
  new MillraceError('invalidState', 'The call has ended, and its journal has no reply of it.');

/** Tells what happens at the steps of a call that goes on. */
const told = ({ replaying }: Pick<CallScope, 'replaying'>, hooks: Hooks): StepListener => ({
  replayed: (step, message) => {
    const iteration = iterationOf(step, hooks);
    replaying?.passed();
    hooks.report(iteration, { type: 'stepReplayed', step });
    if (message === undefined) return;
    replaying?.aside(() => hooks.report(iteration, { type: 'warning', message }));
  },
  begins: (step, shown) => {
    replaying?.end();
    const why = 'The call was broken off, and goes on.';
    for (const messageId of shown) {
      hooks.report(iterationOf(step, hooks), { type: 'messageDiscarded', messageId, why });
    }
  },
});

/** A position begins with it. */
const iterationOf = (step: string, hooks: Hooks): number => {
  const iteration = Number.parseInt(step, 10);
  return Number.isNaN(iteration) ? hooks.iteration() : iteration;
};

/** What a call brings from its session. */
interface Place {
  readonly input: readonly Message[];
  readonly step$: RunStep;
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
    const { input, step$, memory, steering, end = () => undefined, isSuperseded = false } = place;
    const { call, scheduler, interruption, reply$ } = scope;
    const context: CallContext = {
      call,
      hooks,
      scheduler,
      interruption,
      scope,
      steering,
      step$,
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
    return plan.pipeline
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
  });

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
  meter: identity,
  question: undefined,
  notes: {},
  spent: {},
  hidden: [],
  answer: undefined,
  run: undefined,
  reply: undefined,
});
