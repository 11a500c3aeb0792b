import { concatMap, defer, finalize, map, type Observable, of, race, take, tap } from 'rxjs';
import { limitsOf, requestOf } from './call-options.js';
import type { CallPlan } from './call-plan.js';
import { type CallScope, lend } from './call-scope.js';
import { complete } from './complete.js';
import type { Context } from './context.js';
import { endStopped } from './end-stopped.js';
import type { Hooks } from './hooks.js';
import { readInput } from './input.js';
import { loop } from './loop.js';
import { opening$ } from './opening.js';
import { type Memory, noMemory } from './memory.js';
import { type Message, toolUsesOf } from './message.js';
import { ready } from './models/ready.js';
import { type Prepared, prepared$, preparedInput$ } from './prepared.js';
import type { Reply } from './reply.js';
import { open } from './run.js';
import { createSteering, type Steering } from './steering.js';
import { refuseUnknownChoice } from './toolkit.js';
import { dropWarning, supportedOptions } from './supported-options.js';
import { createView } from './tools/select.js';
import { withTools } from './with-tools.js';

/** Runs a call in its scope, from its place in the session to its last event, and emits the reply. */
export const perform$ = (plan: CallPlan, scope: CallScope, hooks: Hooks): Observable<Reply> =>
  defer(() => {
    const { call, interruption } = scope;
    const input = readInput(plan.input, call);
    if (plan.session === undefined) return begin$(plan, scope, hooks, { input, memory: noMemory });
    const { seat, memory } = plan.session;
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

const begin$ = (plan: CallPlan, scope: CallScope, hooks: Hooks, place: Place): Observable<Reply> =>
  defer(() => {
    hooks.report(0, { type: 'preCall', input: place.input });
    return prepared$(plan, scope, hooks, place.input).pipe(
      concatMap(({ status, ...prepared }) => {
        if (place.isSuperseded === true) scope.interruption.trigger({});
        // Nothing is remembered that has not been through all interceptors.
        const memory = status === 'prepared' ? place.memory : noMemory;
        const ready = { ...place, input: prepared.input, memory };
        return run$(prepared.plan, scope, hooks, ready, status);
      }),
    );
  });

const run$ = (
  plan: CallPlan,
  scope: CallScope,
  hooks: Hooks,
  { input: asked, memory, steering, end = () => undefined }: Place,
  status: Prepared['status'],
): Observable<Reply> => {
  const [first, ...others] = asked;
  const results = first?.role === 'tool' ? first : undefined;
  const input = results === undefined ? asked : others;
  const step$: Context['step$'] = (id, work) =>
    plan.journal.step$(`${scope.call.callId}/${id}`, work);
  const goesOn = status === 'prepared' && scope.interruption.current === undefined;
  const resumed = goesOn ? { results } : undefined;
  return step$('open', () => opening$(plan, scope, hooks, memory, input, resumed)).pipe(
    concatMap(({ history, late, system, hidden, createdAt }) => {
      const context = contextOf(plan, scope, hooks, { memory, steering, system, hidden, step$ });
      const run = open(history, input, late);
      toolUseIdsOf(run.messages).forEach((id) => context.toolUseIds.add(id));
      return of(status === 'vetoed' ? endStopped(run, context) : run).pipe(
        loop(context, plan.phases),
        tap(() => scope.interruption.close()),
        complete(context, createdAt, (reply) => {
          end();
          scope.reply$.next(reply);
        }),
      );
    }),
  );
};

const toolUseIdsOf = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap((message) =>
    message.role === 'assistant' ? toolUsesOf(message).map(({ id }) => id) : [],
  );

const contextOf = (
  plan: CallPlan,
  scope: CallScope,
  hooks: Hooks,
  {
    memory,
    steering,
    system,
    hidden,
    step$,
  }: Pick<Context, 'memory' | 'steering' | 'step$'> & {
    readonly system: string | undefined;
    readonly hidden: readonly string[];
  },
): Context => {
  const { model: plain, toolkit: cell, output, options } = plan;
  const shown = createView(cell, hidden);
  const toolkit = shown();
  const { call, interruption, demand, scheduler, turns, values } = scope;
  const model = ready(plain);
  refuseUnknownChoice(options.toolChoice, toolkit);
  const own = requestOf(options, system, output?.jsonSchema);
  const { dropped } = supportedOptions(model, withTools(own, toolkit));
  const { options: request } = supportedOptions(model, own);
  dropped.forEach((option) => hooks.report(0, dropWarning(model, option)));
  toolkit.warnings.forEach((message) => hooks.report(0, { type: 'warning', message }));
  return {
    call,
    model,
    get toolkit() {
      return shown();
    },
    memory,
    hooks,
    interruption,
    steering,
    demand,
    scheduler,
    turns,
    request,
    output,
    limits: limitsOf(options),
    retryBudget: scope.retryBudget,
    values,
    approvers: scope.approvers,
    toolUseIds: new Set(),
    step$,
    prepareInput$: ({ place, messages }) =>
      preparedInput$(plan, call, hooks, hooks.iteration(), place, messages),
    lend: (toolUseId, iteration, abort) => lend(scope, cell, toolUseId, iteration, abort),
  };
};
