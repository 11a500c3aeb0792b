import {
  catchError,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  merge,
  NEVER,
  type Observable,
  take,
  tap,
} from 'rxjs';
import type { PlannedCall } from './planned-call.js';
import { createScope } from './create-scope.js';
import { type MillraceError, toMillraceError } from './errors.js';
import { createHooks } from './hooks.js';
import { isHalt } from './journal/halt.js';
import { perform$ } from './perform.js';
import { abortedError, interrupts$, stopBy } from './stop-by.js';
import type { View } from './view.js';

/**
 * Makes one call of a plan: emits what the caller wants to see of it and of the calls below it, and completes behind
 * `postCall`, or errors behind `error`. Cold: each subscription is a call of its own, and unsubscribing
 * ends it at once.
 */
export const call$ = <Seen>(plan: PlannedCall, view: View<Seen>): Observable<Seen> =>
  defer(() => {
    const { agentName, options, session, listener, interceptors, opened, use: layers } = plan;
    const sessionId = session?.seat.sessionId;
    const record = session?.record;
    const init = {
      ...{ agentName, options, sessionId, listener, interceptors, layers, opened, record },
      forks: plan.begun?.forks,
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
    const descending$: Observable<never> =
      above === undefined
        ? EMPTY
        : above.signal$.pipe(
            tap((interrupt) => interruption.trigger(interrupt)),
            ignoreElements(),
          );
    const interrupted$ = interrupts$(options.interruptOn, interruption, hooks);
    return merge(
      view(scope),
      // The reply ends the wait for an interrupt too.
      merge(descending$, interrupted$, perform$(plan, scope, hooks)).pipe(
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
