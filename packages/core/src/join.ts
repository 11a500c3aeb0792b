import {
  defer,
  endWith,
  finalize,
  ignoreElements,
  merge,
  mergeMap,
  EMPTY,
  type Observable,
  takeUntil,
  throwError,
} from 'rxjs';
import type { CallSetup } from './run-call.js';
import { MillraceError } from './errors.js';
import type { SeatedCall } from './seats.js';
import type { SteerOutcome } from './steering.js';
import { interrupts$, stopBy } from './stop-by.js';
import type { View } from './view.js';

/**
 * Hands an input to a call that runs already, and emits what is to be seen of that call from then on, as it would end for its
 * own caller. Errors with `busy` where the call ends before it has taken the input, with `guardRejected` where `prepare` would not have it. Leaving it leaves the call alone.
 * Of the options it is `demand`, `signal`, `interruptOn` and `callMs` that hold; the others were the running call's to say.
 */
export const join$ = <Seen>(
  { input, options, ownOutput }: CallSetup,
  running: SeatedCall,
  view: View<Seen>,
): Observable<Seen> =>
  defer(() => {
    if (ownOutput) throw otherOutput();
    const { reply$, demand, interruption, hooks, steering } = running;
    const leave = options.demand === undefined ? undefined : demand.join(options.demand);
    const steered$ = steering.steer$(input).pipe(mergeMap(orBusy));
    const ended$ = reply$.pipe(ignoreElements(), endWith(true));
    return merge(
      view(running),
      merge(
        steered$,
        options.interruptOn === undefined
          ? EMPTY
          : interrupts$(options.interruptOn, interruption, hooks),
      ).pipe(takeUntil(ended$)),
    ).pipe(
      stopBy(options, running),
      finalize(() => leave?.()),
    );
  });

const orBusy = (outcome: SteerOutcome): Observable<never> =>
  outcome.status === 'delivered'
    ? EMPTY
    : throwError(() => (outcome.why === 'vetoed' ? vetoed() : tooLate()));

const vetoed = (): MillraceError =>
  new MillraceError(
    'guardRejected',
    "An interceptor of 'prepare' would not have the message: the running call goes on without it.",
  );

const tooLate = (): MillraceError =>
  new MillraceError(
    'busy',
    'The running call of the session ended before it could take the message. Send it again: the session is free now.',
    { retryable: true },
  );

const otherOutput = (): MillraceError =>
  new MillraceError(
    'busy',
    "The session is busy with a call that cannot be given another 'output' any more. Leave 'output' out to join it, or wait until it has ended.",
  );
