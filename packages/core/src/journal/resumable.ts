import type { Callable } from '../call/callable.js';
import type { CallOptions } from '../call/call-options.js';
import type { Use } from '../seams/layer.js';

/** Options of a resumed call. Options that JSON cannot express must be passed again. */
export interface ResumeOptions extends Omit<CallOptions, 'callId' | 'parent'> {
  /**
   * For a tool call that was running when its process ended: the call ends as `suspended`, and a person supplies the result
   * (`ask`, the default; without a session, `report`), the model is informed that the outcome is unknown (`report`), or the tool runs again
   * (`rerun`). Tools that are `idempotent` always run again, with the same key.
   */
  readonly onUncertain?: 'ask' | 'report' | 'rerun' | undefined;
}

export interface Resumable<out Output = unknown> extends Pick<Callable<Output>, 'call$'> {
  with(...layers: Use): Pick<Callable, 'call$' | 'stream$'>;
}
