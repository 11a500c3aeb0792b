import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
  Subject,
  take,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import type { CallInfo } from './call-info.js';
import { aborts$ } from './aborts.js';
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
import type { Context } from './context.js';
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
    const announce = (error: MillraceError): void =>
      hooks.report(hooks.iteration(), { type: 'error', error });
    const fail = (cause: unknown): Observable<never> => {
      const error = hooks.isSettled() ? undefined : toMillraceError(cause);
      if (error !== undefined) announce(error);
      deliver(() => (error === undefined ? own$.complete() : own$.error(error)));
      return EMPTY;
    };
    return merge(
      own$,
      // The reply ends the wait for an interrupt too.
      merge(interrupts$(plan, scope, hooks), perform$(plan, scope, hooks)).pipe(
        take(1),
        stopBy(options, scope),
        tap({ complete: () => deliver(() => own$.complete()) }),
        // Deferred, so that all is torn down before anybody hears of the error.
        catchError((cause: unknown) => defer(() => fail(cause))),
        ignoreElements(),
      ),
    ).pipe(finalize(() => announce(abortedError(call))));
  });

const perform$ = (plan: CallPlan, scope: CallScope, hooks: Hooks): Observable<Reply> =>
  defer(() => {
    const { call, interruption } = scope;
    const input = readInput(plan.input, call);
    const leave = plan.session?.seat.take(call.callId, interruption) ?? (() => undefined);
    return defer(() => {
      hooks.report(0, { type: 'preCall', input });
      return run$(plan, scope, hooks, input, leave);
    }).pipe(finalize(leave));
  });

const run$ = (
  plan: CallPlan,
  scope: CallScope,
  hooks: Hooks,
  input: readonly Message[],
  leave: () => void,
): Observable<Reply> => {
  const memory = plan.session?.memory ?? noMemory;
  const step$: Context['step$'] = (id, work) =>
    plan.journal.step$(`${scope.call.callId}/${id}`, work);
  return step$('open', () => opening$(plan, scope, memory, input)).pipe(
    concatMap(({ history, system, createdAt }) => {
      const context = contextOf(plan, scope, hooks, { memory, system, step$ });
      const run = open(history, input);
      toolUseIdsOf(run.messages).forEach((id) => context.toolUseIds.add(id));
      return of(run).pipe(
        loop(context),
        tap(() => scope.interruption.close()),
        complete(context, createdAt, leave),
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
  { model, toolkit, options }: CallPlan,
  scope: CallScope,
  hooks: Hooks,
  {
    memory,
    system,
    step$,
  }: Pick<Context, 'memory' | 'step$'> & { readonly system: string | undefined },
): Context => {
  const { call, interruption, demand, scheduler, turns } = scope;
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
    turns,
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
): Observable<never> => {
  const passOver = (cause: unknown): Observable<never> => {
    const error = toMillraceError(cause);
    const handler = { of: 'interruptOn', name: 'interruptOn' };
    hooks.report(hooks.iteration(), { type: 'handlerError', ...handler, error });
    return EMPTY;
  };
  const asked$ = defer(() => interruptOn ?? EMPTY).pipe(map(toInterrupt), catchError(passOver));
  return merge(above?.descend$ ?? EMPTY, asked$).pipe(
    tap((interrupt) => interruption.trigger(interrupt)),
    ignoreElements(),
  );
};

/** Errors when the caller aborts, when the tool that makes the call is cut, or when time is up. */
const stopBy =
  <T>(
    { signal, parent, timeouts }: CallOptions,
    { call, scheduler }: CallScope,
  ): MonoTypeOperatorFunction<T> =>
  (source) =>
    source.pipe(
      takeUntil(
        merge(aborts$(signal), aborts$(parent?.signal)).pipe(
          mergeMap((reason) => throwError(() => abortedError(call, reason))),
        ),
      ),
      deadline(timeouts?.callMs, scheduler, 'The call'),
    );

const abortedError = ({ callId }: CallInfo, cause?: unknown): MillraceError =>
  new MillraceError('aborted', `The call '${callId}' was stopped before it ended.`, { cause });
