import {
  catchError,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type MonoTypeOperatorFunction,
  type Observable,
  Subject,
  take,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import { aborts$ } from './aborts.js';
import type { CallInfo } from './call-info.js';
import type { CallOptions } from './call-options.js';
import type { CallPlan } from './call-plan.js';
import { type CallScope, createScope } from './call-scope.js';
import { deadline } from './deadline.js';
import { MillraceError, toMillraceError } from './errors.js';
import type { AgentEvent } from './events.js';
import { createHooks, type Hooks } from './hooks.js';
import { toInterrupt } from './interruption.js';
import { perform$ } from './perform.js';

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
      deadline(timeouts?.callMs, scheduler, 'The call', 'callMs'),
    );

const abortedError = ({ callId }: CallInfo, cause?: unknown): MillraceError =>
  new MillraceError('aborted', `The call '${callId}' was stopped before it ended.`, { cause });
