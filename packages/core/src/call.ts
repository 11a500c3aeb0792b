import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  finalize,
  fromEvent,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type MonoTypeOperatorFunction,
  NEVER,
  type Observable,
  of,
  Subject,
  take,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import type { CallInfo } from './call-info.js';
import { type CallOptions, limitsOf, requestOf } from './call-options.js';
import { type CallScope, createScope, lend, type Listener } from './call-scope.js';
import { complete } from './complete.js';
import { deadline } from './deadline.js';
import { MillraceError, toMillraceError } from './errors.js';
import type { AgentEvent } from './events.js';
import { failAs } from './fail-as.js';
import { createHooks, type Hooks } from './hooks.js';
import { type Input, readInput } from './input.js';
import type { Interceptor } from './interceptor.js';
import { toInterrupt } from './interruption.js';
import type { Journal } from './journal.js';
import { loop } from './loop.js';
import { type Memory, noMemory } from './memory.js';
import { type Message, toolUsesOf } from './message.js';
import type { Model } from './model.js';
import type { Context } from './phase.js';
import type { Reply } from './reply.js';
import { open, unpaired } from './run.js';
import type { Seat } from './seats.js';
import { dropWarning, supportedOptions } from './supported-options.js';
import type { Toolkit } from './toolkit.js';

/** Everything that is settled before a call begins. */
export interface CallPlan {
  readonly agentName: string;
  readonly model: Model;
  readonly toolkit: Toolkit;
  readonly instructions: string | ((call: CallInfo) => string) | undefined;
  readonly interceptors: readonly Interceptor[];
  readonly journal: Journal;
  readonly options: CallOptions;
  /** Those who hear every call of the agent. */
  readonly listener: Listener;
  readonly input: Input;
  /** Where the call sits in its session; a call without a session remembers nothing. */
  readonly session: { readonly seat: Seat; readonly memory: Memory } | undefined;
}

/**
 * Makes one call of a plan: emits its events and those of the calls below it, and completes behind
 * `postCall`, or errors behind `error`. Cold: each subscription is a call of its own, and unsubscribing
 * ends it at once.
 */
export const call$ = (plan: CallPlan): Observable<AgentEvent> =>
  defer(() => {
    const own$ = new Subject<AgentEvent>();
    const { agentName, options, session, listener } = plan;
    const scope = createScope(agentName, options, session?.seat.sessionId, [
      (event) => own$.next(event),
      listener,
    ]);
    const { call, deliver, listeners } = scope;
    const hooks = createHooks({
      ...scope,
      interceptors: plan.interceptors,
      deliver: (event) => deliver(() => listeners.forEach((listen) => listen(event))),
    });
    let settled = false;
    const settle = (how: () => void): void => {
      settled = true;
      deliver(how);
    };
    const fail = (cause: unknown): Observable<never> => {
      const error = toMillraceError(cause);
      hooks.report(hooks.iteration(), { type: 'error', error });
      settle(() => own$.error(error));
      return EMPTY;
    };
    const abandoned = (): void => {
      if (!settled) hooks.report(hooks.iteration(), { type: 'error', error: abortedError(call) });
    };
    return merge(
      own$,
      // The reply ends the wait for an interrupt too.
      merge(interrupts$(plan, scope, hooks), perform$(plan, scope, hooks)).pipe(
        take(1),
        stopBy(options, scope),
        tap({ complete: () => settle(() => own$.complete()) }),
        catchError(fail),
        ignoreElements(),
      ),
    ).pipe(finalize(abandoned));
  });

const perform$ = (plan: CallPlan, scope: CallScope, hooks: Hooks): Observable<Reply> =>
  defer(() => {
    const { input, session, journal } = plan;
    const { call, interruption } = scope;
    const leave = session?.seat.take(call.callId, interruption) ?? (() => undefined);
    const messages = readInput(input, call);
    hooks.report(0, { type: 'preCall', input: messages });
    const step$: Context['step$'] = (id, work) => journal.step$(`${call.callId}/${id}`, work);
    const memory = session?.memory ?? noMemory;
    return step$('open', () => opening$(plan, scope, memory)).pipe(
      concatMap(({ history, system, createdAt }) => {
        const context = contextOf(plan, scope, hooks, { memory, system, step$ });
        const run = open(history, messages);
        toolUseIdsOf(run.messages).forEach((id) => context.toolUseIds.add(id));
        return of(run).pipe(
          loop(context),
          tap(() => interruption.close()),
          complete(context, createdAt, leave),
        );
      }),
      finalize(leave),
    );
  });

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
): Observable<Opening> => {
  const createdAt = scheduler.now();
  return defer(() => memory.load$()).pipe(
    failAs('memory', 'The memory could not be read'),
    take(1),
    defaultIfEmpty([]),
    map((history) => ({
      history: whole(history),
      system: typeof instructions === 'function' ? instructions(call) : instructions,
      createdAt,
    })),
  );
};

const whole = (history: readonly Message[]): readonly Message[] => {
  const fault = unpaired(history);
  if (fault === undefined) return history;
  throw new MillraceError('memory', `The memory holds ${fault}: it cannot be sent to a model.`);
};

const toolUseIdsOf = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap((message) =>
    message.role === 'assistant' ? toolUsesOf(message).map(({ id }) => id) : [],
  );

const contextOf = (
  { model, toolkit, options }: CallPlan,
  scope: CallScope,
  hooks: Hooks,
  {
    memory,
    system,
    step$,
  }: Pick<Context, 'memory' | 'step$'> & { readonly system: string | undefined },
): Context => {
  const { call, interruption, demand, scheduler } = scope;
  const wanted = requestOf(options, toolkit.declarations, system);
  const { options: request, dropped } = supportedOptions(model, wanted);
  dropped.forEach((option) => hooks.report(0, dropWarning(model, option)));
  return {
    call,
    model,
    toolkit,
    memory,
    hooks,
    interruption,
    demand,
    scheduler,
    request,
    limits: limitsOf(options),
    toolUseIds: new Set(),
    step$,
    lend: (toolUseId, iteration, signal) => lend(scope, toolUseId, iteration, signal),
  };
};

/** Triggers the interruption, and emits nothing. */
const interrupts$ = (
  { options: { interruptOn } }: CallPlan,
  { interruption, above }: CallScope,
  hooks: Hooks,
): Observable<never> =>
  merge(above?.descend$ ?? EMPTY, defer(() => interruptOn ?? EMPTY).pipe(map(toInterrupt))).pipe(
    tap((interrupt) => interruption.trigger(interrupt)),
    ignoreElements(),
    catchError((cause: unknown) => {
      const error = toMillraceError(cause);
      hooks.report(0, { type: 'handlerError', of: 'interruptOn', name: 'interruptOn', error });
      return EMPTY;
    }),
  );

const stopBy =
  <T>(
    { signal, timeouts }: CallOptions,
    { call, scheduler }: CallScope,
  ): MonoTypeOperatorFunction<T> =>
  (source) =>
    source.pipe(
      takeUntil(
        abort$(signal).pipe(mergeMap(() => throwError(() => abortedError(call, signal?.reason)))),
      ),
      deadline(timeouts?.callMs, scheduler, 'The call'),
    );

const abort$ = (signal: AbortSignal | undefined): Observable<unknown> => {
  if (signal === undefined) return NEVER;
  return signal.aborted ? of(true) : fromEvent(signal, 'abort').pipe(take(1));
};

const abortedError = ({ callId }: CallInfo, cause?: unknown): MillraceError =>
  new MillraceError('aborted', `The call '${callId}' was stopped before it ended.`, { cause });
