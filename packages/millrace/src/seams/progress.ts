import { cell, type Locals } from '../step.js';
import type { Run, EndedRun } from '../run.js';
import type { MillraceError } from '../values/errors.js';
import type { AssistantMessage, ToolResultBlock, Message } from '../values/message.js';
import { type Observable, defer, EMPTY } from 'rxjs';

/** How far the loop of a call has come, should it fail. Set by the loop and `acting`; read by `answerWith`, and by the conversation if the call fails. */
export const loopProgress = cell('call', (): LoopProgress => ({}));

interface LoopProgress {
  /** The run after the last turn, or after its tools. */
  run?: Run;
  /** The running tool calls, with the results so far. */
  acting?: { readonly message: AssistantMessage; readonly results: ToolResultBlock[] } | undefined;
}

/** The progress of a call, for the layers around its loop. */
export const callProgress = cell('call', (): CallProgress => ({}));

interface CallProgress {
  /** Runs if the call fails: the layer `conversation` stores what the turns have not stored yet. Never errors. */
  onFailure$?: ((error: unknown) => Observable<never>) | undefined;
  /** The input, until `preCall` has reported it. */
  input?: readonly Message[] | undefined;
  /** The run that the reply was made of: that of the loop, or of an answer of a layer. */
  concluded?: EndedRun;
  /** Whether memory has the messages of the call. */
  isRemembered?: boolean;
  /** The error to report instead: the layer `userMessages` sets it. Never throws. */
  reported?: (error: MillraceError) => MillraceError;
}

/** Runs `onFailure$`, once. */
export const storeOnFailure$ = (
  { local }: { readonly local: Locals },
  error: unknown,
): Observable<never> =>
  defer(() => {
    const state = local(callProgress);
    const { onFailure$: then } = state;
    state.onFailure$ = undefined;
    return then?.(error) ?? EMPTY;
  });
