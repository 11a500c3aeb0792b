import type { MonoTypeOperatorFunction, SchedulerLike } from 'rxjs';
import type { CallInfo } from '../call-info.js';
import type { CallScope } from '../call-scope.js';
import type { Hooks } from '../hooks.js';
import type { Interruption } from '../interruption.js';
import type { Perform } from '../step.js';
import type { Model } from '../model.js';
import type { Reply } from '../reply.js';
import type { Steering } from '../steering.js';
import type { CallState } from './call-state.js';

/** What the stages of one call share. A stage asks for the part it uses. */
export interface CallContext {
  readonly call: CallInfo;
  readonly hooks: Hooks;
  readonly scheduler: SchedulerLike;
  readonly interruption: Interruption;
  readonly scope: CallScope;
  readonly steering: Steering | undefined;
  /** A later call has made it void while it waited: it is only to be remembered. */
  readonly isSuperseded: boolean;
  /** Performs a step of the call: the only way to ask the outside world. */
  readonly perform: Perform;
  /** Wraps a model, whichever is asked for the call, in the call's layers. */
  readonly throughLayers: (model: Model) => Model;
  /** Gives the place in the session on, and the reply to those who have joined. */
  readonly settle: (reply: Reply) => void;
}

/** Makes a stage for one call: an operator on the call. */
export type CallStage = (context: CallContext) => MonoTypeOperatorFunction<CallState>;
