import {
  catchError,
  concat,
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
import { finalizeNow } from '../flow/contained.js';
import { continueWith, deferWork } from '../flow/eventual.js';
import { instructionsOf } from './instructions.js';
import { ensurePreCall$ } from './layers/pre-call.js';
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
import { callOf, type CallSetup, createCall, type CreatedCall } from './create-call.js';
import { callProgress, storeOnFailure$ } from '../seams/progress.js';

/**
 * Makes one call: emits its `view`, completes after `postCall` or errors after `error`. Cold; unsubscribing aborts it.
 * From outside in: `record` of the layers (`recordedCall$`), the delivery of events and the abort (`deliveredCall$`), `call` of the layers
 * (`replyThroughLayers$`), the loop.
 */
export const call$ = <Seen>(setup: CallSetup, view: View<Seen>): Observable<Seen> =>
  deferWork(() => {
    const call = createCall(setup);
    // The parent was interrupted: its tool no longer waits, and unsubscribes. Completing empty would be a fault.
    const isOver = call.parentTool?.isOver() === true;
    return isOver ? NEVER : recordedCall$(setup, call, view);
  });

/**
 * Makes the call within the `record` of its layers, if one has it. A `record` that errors before it subscribes fails the call, and
 * observers see that. One that subscribes twice, or completes without subscribing, is at fault.
 */
const recordedCall$ = <Seen>(
  setup: CallSetup,
  call: CreatedCall,
  view: View<Seen>,
): Observable<Seen> => {
  const { context, afterwards } = call;
  let hasBegun = false;
  const delivered$ = (replied$: Observable<Reply>): Observable<Seen> => {
    hasBegun = true;
    return deliveredCall$(setup.options, call, replied$, view);
  };
  if (!context.layers.some(({ record }) => record))
    return delivered$(replyThroughLayers$(setup, call));
  // Empty, though it has begun: no fault, but a sub-agent that is suspended with its parent, which emits no reply.
  let neverSubscribed: MillraceError | undefined;
  const callOnce$ = defer(() => {
    if (hasBegun) throw recordFault();
    return delivered$(replyThroughLayers$(setup, call));
  });
  return defer(() => recordThrough(context.layers, context, callOnce$)).pipe(
    throwIfEmpty(() => (neverSubscribed = recordFault())),
    catchError((cause: unknown) => {
      if (hasBegun && neverSubscribed !== undefined && cause === neverSubscribed) return EMPTY;
      const error = toMillraceError(cause);
      if (hasBegun) throw error;
      // Observers of the agent also see calls that could not start.
      return delivered$(throwError(() => error));
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
  { context, parentTool, deliver, events$, reply$, afterwards }: CreatedCall,
  replied$: Observable<Reply>,
  view: View<Seen>,
): Observable<Seen> => {
  const { info, hooks, interruption } = context;
  const parentInterruption = parentTool?.scope.context.interruption;
  // Holds the tool step of the parent: an interrupt ends calls from the inside out.
  const release = parentTool && parentInterruption?.hold(parentTool.stepId);
  const reported = (error: MillraceError): MillraceError =>
    context.local(callProgress).reported?.(error) ?? error;
  let failure: MillraceError | undefined;
  const fail = (error: MillraceError): void => {
    if (!hooks.hasDeliveredLast()) {
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
  // Passes the interrupt of the parent on. Emits nothing.
  const descending$ = parentInterruption?.signal$.pipe(
    tap((interrupt) => interruption.trigger(interrupt)),
    ignoreElements(),
  );
  // Emits nothing, and completes when the call has ended. `take(1)`: `descending$` would keep the merge open.
  const ended$ = (
    descending$ === undefined ? replied$ : merge(descending$, replied$).pipe(take(1))
  ).pipe(
    abortWhen(options, context),
    // Emits `preCall` if nothing has yet: a layer outside of `preCallLayer` may have answered.
    continueWith((answered) =>
      ensurePreCall$(context, () => {
        const reply = frozen(withText(answered));
        // Before the last event: an observer of it may leave, and the reply must be there.
        reply$.next(reply);
        complete(reply, context);
        end();
        return EMPTY;
      }),
    ),
    // `catchError` tears everything down before it subscribes to what is deferred here: only then is the error delivered.
    catchError((cause: unknown) =>
      defer(() => {
        const error = reported(toMillraceError(cause));
        // The tool that makes this call throws it, too, instead of a result that would be recorded.
        if (isFatal(error) && parentTool) parentTool.below.halt ??= error;
        return concat(
          storeOnFailure$(context, error),
          defer(() => {
            fail(error);
            return EMPTY;
          }),
        );
      }),
    ),
  );
  return merge(view({ events$, reply$ }), ended$).pipe(
    // A caller may leave while the call emits synchronously. `finalize` would wait until that returns, and its journal is closed by then.
    finalizeNow(() => {
      if (hooks.hasDeliveredLast()) end();
      else fail(reported(abortedError(info)));
      // After the delivery of all events, so that the work may wait for them.
      if (afterwards.length > 0) deliver(() => afterwards.forEach((work) => work()), 'whenIdle');
      release?.();
    }),
  );
};

const replyThroughLayers$ = (
  setup: CallSetup,
  { context, values }: CreatedCall,
): Observable<Reply> =>
  deferWork(() => {
    const { info, layers, local, scheduler } = context;
    const innermost = setup.createAnswer(context);
    // The history and the input. `voices`: in a team, earlier messages of all members are its own.
    const asked = readAsked(setup.input, {
      ...info,
      ...local(voices),
      isResumed: isResumed(context),
    });
    // For the event `preCall`.
    local(callProgress).input = asked.input;
    local(instructionsOf).own = setup.instructions;
    const answer = answerThrough(layers, context, innermost);
    return answer(callOf(setup, asked, values, scheduler.now()));
  });

/** Emits the last event. If a layer replied with a message of its own, the answer of the loop is discarded. */
const complete = (reply: Reply, { hooks, local }: Context): void => {
  const { concluded } = local(callProgress);
  if (concluded !== undefined && reply.id !== concluded.answer.id) {
    discard({ hooks }, concluded.iteration, concluded.answer, 'stopped');
  }
  hooks.report(concluded?.iteration ?? reply.iterations, { type: 'postCall', reply });
};

/** A layer may have changed the content. */
const withText = (reply: Reply): Reply => {
  const text = answerTextOf(reply);
  return reply.text === text ? reply : { ...reply, text };
};
