import type { CallInfo } from '../values/reply.js';
import type { InputMessage } from './input.js';
import type { LimitOptions } from '../flow/deadline.js';
import type { Model, RequestOptions } from '../models/model.js';
import type { ToolEntry } from '../tools/types.js';

/** What a call begins with, as `prepare` shows it and takes it back. */
export interface Preparation {
  readonly call: CallInfo;
  /** What was asked. The call gives messages their ids. */
  readonly input: readonly InputMessage[];
  /** The model and the tools of the call, and what it says beside them. */
  readonly options: PreparedOptions;
}

/** What an agent sets for all its calls, and a call for itself. */
export interface CallDefaults {
  /** Settings of each request to the model. Those that are absent are the agent's. A `toolChoice` that forces a tool applies to the first request only. */
  readonly request?: Pick<
    RequestOptions,
    'temperature' | 'maxTokens' | 'toolChoice' | 'stopSequences'
  >;
  /** How long the call may take, and how much it may do. Those that are absent are the agent's. `callMs` and `retryBudget` apply before `prepare` runs, so it cannot change them. */
  readonly limits?: LimitOptions;
}

/** What a call may be prepared otherwise in. */
export interface PreparedOptions extends CallDefaults {
  readonly model?: Model;
  /** The tools of this call, instead of those it would have. */
  readonly tools?: readonly ToolEntry[];
}
