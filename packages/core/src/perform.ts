import {
  concatMap,
  defaultIfEmpty,
  defer,
  finalize,
  map,
  type Observable,
  of,
  race,
  take,
  tap,
} from 'rxjs';
import type { CallInfo } from './call-info.js';
import { limitsOf, requestOf } from './call-options.js';
import type { CallPlan } from './call-plan.js';
import { type CallScope, lend } from './call-scope.js';
import { complete } from './complete.js';
import type { Context } from './context.js';
import { contained } from './contained.js';
import { endStopped } from './end-stopped.js';
import { MillraceError } from './errors.js';
import { failAs } from './fail-as.js';
import type { Hooks } from './hooks.js';
import { readInput } from './input.js';
import { loop } from './loop.js';
import { type Memory, noMemory } from './memory.js';
import { type Message, toolUsesOf } from './message.js';
import { ready } from './models/ready.js';
import { prepared$, preparedInput$ } from './prepared.js';
import type { Reply } from './reply.js';
import { open, unpaired } from './run.js';
import { createSteering, type Steering } from './steering.js';
import { refuseUnknownChoice } from './toolkit.js';
import { dropWarning, supportedOptions } from './supported-options.js';

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
        return run$(prepared.plan, scope, hooks, ready, status === 'vetoed');
      }),
    );
  });

const run$ = (
  plan: CallPlan,
  scope: CallScope,
  hooks: Hooks,
  { input, memory, steering, end = () => undefined }: Place,
  isVetoed: boolean,
): Observable<Reply> => {
  const step$: Context['step$'] = (id, work) =>
    plan.journal.step$(`${scope.call.callId}/${id}`, work);
  return step$('open', () => opening$(plan, scope, memory, input)).pipe(
    concatMap(({ history, system, createdAt }) => {
      const context = contextOf(plan, scope, hooks, { memory, steering, system, step$ });
      const run = open(history, input);
      toolUseIdsOf(run.messages).forEach((id) => context.toolUseIds.add(id));
      return of(isVetoed ? endStopped(run, context) : run).pipe(
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

/** What a call begins with, and would begin with again if it were resumed. */
interface Opening {
  readonly history: readonly Message[];
  readonly system: string | undefined;
  readonly createdAt: number;
}

const opening$ = (
  { instructions }: CallPlan,
  { call, scheduler }: CallScope,
  memory: Memory,
  input: readonly Message[],
): Observable<Opening> => {
  const createdAt = scheduler.now();
  return defer(() => memory.load$()).pipe(
    contained(),
    failAs('memory', 'The memory could not be read'),
    take(1),
    defaultIfEmpty([]),
    map((history) => ({
      history: usable(history, input, call),
      system: typeof instructions === 'function' ? instructions(call) : instructions,
      createdAt,
    })),
  );
};

/** Checked, because a memory is foreign code. */
const isList = (value: unknown): boolean => Array.isArray(value);

const usable = (
  history: readonly Message[],
  input: readonly Message[],
  { callId }: CallInfo,
): readonly Message[] => {
  if (!isList(history)) {
    throw new MillraceError('memory', 'The memory gave no list of messages.');
  }
  const fault = unpaired(history);
  if (fault !== undefined) {
    throw new MillraceError('memory', `The memory holds ${fault}: it cannot be sent to a model.`);
  }
  if (history.some(({ id }) => input.some((message) => message.id === id))) {
    throw new MillraceError(
      'conflict',
      `The session has had a call '${callId}' already. Give each call an id of its own, or none.`,
    );
  }
  return history;
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
    step$,
  }: Pick<Context, 'memory' | 'steering' | 'step$'> & { readonly system: string | undefined },
): Context => {
  const { model: plain, toolkit, output, options } = plan;
  const { call, interruption, demand, scheduler, turns } = scope;
  const model = ready(plain);
  refuseUnknownChoice(options.toolChoice, toolkit);
  const wanted = requestOf(options, toolkit.declarations, system, output?.jsonSchema);
  const { options: request, dropped } = supportedOptions(model, wanted);
  dropped.forEach((option) => hooks.report(0, dropWarning(model, option)));
  return {
    call,
    model,
    toolkit,
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
    toolUseIds: new Set(),
    step$,
    prepareInput$: ({ place, messages }) =>
      preparedInput$(plan, call, hooks, hooks.iteration(), place, messages),
    lend: (toolUseId, iteration, abort) => lend(scope, toolUseId, iteration, abort),
  };
};
