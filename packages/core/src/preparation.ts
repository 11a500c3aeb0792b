import type { CallInfo } from './call-info.js';
import type { InputMessage } from './input.js';
import type { LimitOptions } from './limits.js';
import type { Model, RequestOptions } from './model.js';
import type { ToolEntry } from './tools/types.js';

/** What a call begins with, as `prepare` shows it and takes it back. */
export interface Preparation {
  readonly call: CallInfo;
  /** What was asked. The call gives messages their ids. */
  readonly input: readonly InputMessage[];
  /** The model and the tools of the call, and what it says beside them. */
  readonly options: PreparedOptions;
}

/** What a call may be prepared otherwise in. */
export interface PreparedOptions {
  readonly model?: Model;
  /** The tools of this call, instead of those of its session or agent. */
  readonly tools?: readonly ToolEntry[];
  /** What its requests say beside their messages, in place of what the agent says. A choice that forces a tool covers the first request only. */
  readonly request?: Pick<
    RequestOptions,
    'temperature' | 'maxTokens' | 'toolChoice' | 'stopSequences'
  >;
  /** How long it may take, and how much it may do, in place of what the agent says. When a call is prepared, `callMs` and `retryBudget` hold already. */
  readonly limits?: LimitOptions;
}
