import type { CallInfo } from '../values/reply.js';
import type { InputMessage } from './input.js';
import type { LimitOptions } from '../flow/deadline.js';
import type { Model, RequestOptions } from '../models/model.js';
import type { ToolEntry } from '../tools/types.js';

/** The input and options of a call, which `prepare` may edit. */
export interface Preparation {
  readonly call: CallInfo;
  readonly input: readonly InputMessage[];
  /** The messages before the question that guards check: those in a list of messages as input. Edits have no effect. */
  readonly history: readonly InputMessage[];
  readonly options: PreparedOptions;
}

type RequestSettings = {
  readonly [Key in 'temperature' | 'maxTokens' | 'toolChoice' | 'stopSequences']?:
    RequestOptions[Key] | undefined;
};

/** Settings of an agent for all its calls, or of a call. */
export interface CallDefaults {
  /** Overrides the agent's request settings. A `toolChoice` that forces a tool applies to the first request only. */
  readonly request?: RequestSettings | undefined;
  /** Overrides the agent's limits. `prepare` cannot change `callMs` and `retryBudget`, which apply before it. */
  readonly limits?: LimitOptions | undefined;
}

export interface PreparedOptions extends CallDefaults {
  readonly model?: Model | undefined;
  readonly tools?: readonly ToolEntry[] | undefined;
}
