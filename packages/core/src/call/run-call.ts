import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  merge,
  NEVER,
  type Observable,
  take,
  tap,
  throwError,
  throwIfEmpty,
} from 'rxjs';
import { observed } from '../flow/eventual.js';
import { instructionsOf } from './instructions.js';
import { afterPreCall$ } from './layers/pre-call.js';
import type { CallOptions } from './call-options.js';
import { discard } from '../phases/message-builder.js';
import { isFatal, MillraceError, toMillraceError } from '../values/errors.js';
import { frozen, answerTextOf } from '../values/message.js';
import { readAsked, voices } from '../seams/input.js';
import type { Context } from '../seams/layer.js';
import { answerThrough, isResumed, recordThrough } from '../seams/through.js';
import type { Reply } from '../values/reply.js';
import { abortedError, abortWhen } from './abort-when.js';
import type { View } from './callable.js';
import { failed$, outcome } from '../run.js';
import { callOf, type CallSetup, createCall, type CreatedCall } from './create-call.js';

/** Makes one call: emits its `view`, completes after `postCall` or errors after `error`. Cold; unsubscribing aborts it. */
export const call$ = <Seen>(setup: CallSetup, view: View<Seen>): Observable<Seen> =>
  observed(() => {
    const call = createCall(setup);
    // The parent was interrupted: its steps have stopped waiting, so the call neither starts nor emits.
    const isOver = call.above?.isOver() === true;
    return isOver ? NEVER : startCall$(setup, call, view);
  });

/**
 * Makes the call within the `record` of its layers, if one has it. A `record` that errors before it subscribes fails the call, and
 * observers see that. One that subscribes twice, or completes without subscribing, is at fault.
 */
const startCall$ = <Seen>(
  setup: CallSetup,
  call: CreatedCall,
  view: View<Seen>,
): Observable<Seen> => {
  const { context, afterwards } = call;
  let hasBegun = false;
  let emittedNothing: MillraceError | undefined;
  const begin$ = (replied$: Observable<Reply>): Observable<Seen> => {
    hasBegun = true;
    return deliveredCall$(setup.options, call, replied$, view);
  };
  if (!context.layers.some(({ record }) => record)) return begin$(replyThroughLayers$(setup, call));
  const callOnce$ = defer(() => {
    if (hasBegun) throw recordFault();
    return begin$(replyThroughLayers$(setup, call));
  });
  return defer(() => recordThrough(context.layers, context, callOnce$)).pipe(
    throwIfEmpty(() => (emittedNothing = recordFault())),
    // Observers of the agent also see calls that could not start.
    catchError((cause: unknown) => {
      // A sub-agent that waits emits no reply.
      if (hasBegun && cause === emittedNothing) return EMPTY;
      const error = toMillraceError(cause);
      if (hasBegun) throw error;
      return begin$(throwError(() => error));
    }),
    finalize(() => {
      if (!hasBegun) afterwards.forEach((work) => work());
    }),
  );
};

const recordFault = (): MillraceError =>
  new MillraceError('invalidState', "A layer's 'record' must subscribe once.");

const deliveredCall$ = <Seen>(
  options: CallOptions,
  { context, above, deliver, events$, reply$, afterwards }: CreatedCall,
  replied$: Observable<Reply>,
  view: View<Seen>,
): Observable<Seen> => {
  const { info: call, hooks, interruption } = context;
  const caller = above?.scope.context.interruption;
  // The parent waits for it from now on.
  const release = above && caller?.hold(above.stepId);
  let failure: MillraceError | undefined;
  const fail = (error: MillraceError): void => {
    if (!hooks.isSettled()) {
      failure = error;
      hooks.report(hooks.iteration(), { type: 'error', error });
    }
    end();
  };
  // Idempotent.
  const end = (): void =>
    deliver(() => {
      for (const subject of [reply$, events$]) {
        if (failure === undefined) subject.complete();
        else subject.error(failure);
      }
    });
  const descending$ = caller?.signal$.pipe(
    tap((interrupt) => interruption.trigger(interrupt)),
    ignoreElements(),
  );
  // The reply ends the wait for an interrupt.
  const ended$ = (
    descending$ === undefined ? replied$ : merge(descending$, replied$).pipe(take(1))
  ).pipe(
    abortWhen(options, context),
    // A layer outside of `preCallLayer` may have answered: `preCall` comes first even so.
    concatMap((answered) =>
      afterPreCall$(context, () => {
        const reply = frozen(withText(answered));
        // Before the last event: an observer of it may leave, and the reply must be there.
        reply$.next(reply);
        complete(reply, context);
        end();
        return EMPTY;
      }),
    ),
    // Deferred: everything is torn down before the error is delivered.
    catchError((cause: unknown) =>
      defer(() => {
        const error = toMillraceError(cause);
        // It also fails the tool that makes this call: its result must not be recorded.
        if (isFatal(error) && above) above.below.halt ??= error;
        return concat(
          failed$(context, error),
          defer(() => {
            fail(error);
            return EMPTY;
          }),
        );
      }),
    ),
  );
  return merge(view({ events$, reply$ }), ended$).pipe(
    finalize(() => {
      if (hooks.isSettled()) end();
      else fail(abortedError(call));
      // Outside of the delivery, which the work would wait for.
      if (afterwards.length > 0) deliver(() => afterwards.forEach((work) => work()), true);
      release?.();
    }),
  );
};

const replyThroughLayers$ = (
  setup: CallSetup,
  { context, values }: CreatedCall,
): Observable<Reply> =>
  observed(() => {
    const { info: call, layers, local, scheduler } = context;
    const own = setup.answer(context);
    const asked = readAsked(setup.input, {
      ...call,
      ...local(voices),
      isResumed: isResumed(context),
    });
    local(outcome).input = asked.input;
    local(instructionsOf).own = setup.instructions;
    const answer = answerThrough(layers, context, own);
    return answer(callOf(setup, asked, values, scheduler.now()));
  });

/** Emits the last event. If a layer replaced the answer of the loop, that is discarded. */
const complete = (reply: Reply, { hooks, local }: Context): void => {
  const { run } = local(outcome);
  if (run !== undefined && reply.id !== run.answer.id) {
    discard({ hooks }, run.iteration, run.answer, 'stopped');
  }
  hooks.report(run?.iteration ?? reply.iterations, { type: 'postCall', reply });
};

/** A layer may have changed the content. */
const withText = (reply: Reply): Reply => {
  const text = answerTextOf(reply);
  return reply.text === text ? reply : { ...reply, text };
};
