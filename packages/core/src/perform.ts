import { concatMap, defer, finalize, identity, map, type Observable, of, race, take } from 'rxjs';
import type { CallPlan } from './call-plan.js';
import type { PlannedCall } from './planned-call.js';
import type { CallScope } from './call-scope.js';
import { MillraceError } from './errors.js';
import type { Hooks } from './hooks.js';
import { readInput } from './input.js';
import { type Memory, noMemory } from './memory.js';
import type { Message } from './message.js';
import type { CallContext } from './pipeline/call-stage.js';
import type { CallState } from './pipeline/call-state.js';
import { isInPlaceOfLoop } from './pipeline/loop-stages.js';
import { oneState } from './pipeline/one-state.js';
import { runLoop } from './pipeline/run-loop.js';
import { replyOf } from './pipeline/review-reply.js';
import type { Reply } from './reply.js';
import { createSteering, type Steering } from './steering.js';

/** Runs a call in its scope, from its place in the session to its last event, and emits the reply. */
export const perform$ = (plan: PlannedCall, scope: CallScope, hooks: Hooks): Observable<Reply> =>
  defer(() => {
    const { call, interruption } = scope;
    const input = readInput(plan.input, call);
    if (plan.session === undefined) return begin$(plan, scope, hooks, { input, memory: noMemory });
    const { seat, memory, record } = plan.session;
    const { onBusy = 'reject', maxQueue = 16 } = plan.options;
    const steering = createSteering(call);
    const end = (): void => {
      steering.close();
      seat.leave(call);
    };
    return race(
      seat.take$({ ...scope, hooks, input, steering }, onBusy, maxQueue),
      interruption.cut$.pipe(map(() => undefined)),
    ).pipe(
      take(1),
      concatMap((seated) => {
        // A call that was interrupted while it waited has not been a part of the conversation.
        const own = seated === undefined ? noMemory : memory;
        if (seated !== undefined) record.begin();
        const isSuperseded = seated === 'superseded';
        return begin$(plan, scope, hooks, { input, memory: own, steering, end, isSuperseded });
      }),
      finalize(end),
    );
  });

/** What a call brings from its session. */
interface Place {
  readonly input: readonly Message[];
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
    const { input, memory, steering, end = () => undefined, isSuperseded = false } = place;
    const { call, scheduler, interruption, reply$ } = scope;
    const context: CallContext = {
      call,
      hooks,
      scheduler,
      interruption,
      scope,
      steering,
      step$: (id, work) => plan.journal.step$(`${call.callId}/${id}`, work),
      isSuperseded,
      settle: (reply) => {
        end();
        reply$.next(reply);
      },
    };
    hooks.report(0, { type: 'preCall', input });
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
