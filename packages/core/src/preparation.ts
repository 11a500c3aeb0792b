import type { CallInfo } from './call-info.js';
import type { PreparedOptions } from './call-options.js';
import type { InputMessage } from './input.js';

/** What a call begins with, as `prepare` shows it and takes it back. */
export interface Preparation {
  readonly call: CallInfo;
  /** What was asked. The call gives messages their ids. */
  readonly input: readonly InputMessage[];
  /** The model and the tools of the call, and what it says beside them. Of its time-outs, `callMs` has begun already. */
  readonly options: PreparedOptions;
}
