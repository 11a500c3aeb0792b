import type { Layer } from './layer.js';
import type { CallInfo } from './call-info.js';
import type { CallOptions } from './call-options.js';
import type { Listener } from './events.js';
import type { Input } from './input.js';
import type { Interceptor } from './interceptor.js';
import type { OpenedJournal } from './call-scope.js';
import type { CallRecord } from './journal/call-record.js';
import type { Memory } from './memory.js';
import type { Model } from './model.js';
import type { Seat } from './seats.js';
import type { SessionRecord } from './sessions/session-records.js';
import type { Validator } from './schema.js';
import type { ToolkitCell } from './tools/live-toolkit.js';

/** Everything that is settled before a call begins. */
export interface CallPlan {
  readonly agentName: string;
  /** An agent whose loop is another than the model's has none. */
  readonly model: Model | undefined;
  readonly toolkit: ToolkitCell;
  /** Whether the call itself says what the answer must be, and not only its agent. */
  readonly ownOutput: boolean;
  /** What the answer must be. */
  readonly output: Validator | undefined;
  readonly instructions: string | ((call: CallInfo) => string) | undefined;
  readonly interceptors: readonly Interceptor[];
  /** The layers of the agent and of the call. */
  readonly use: readonly Layer[];
  /** Where the call is written down; nowhere, or where the call above is. */
  readonly opened?: OpenedJournal;
  /** What the call has begun with, where it goes on. */
  readonly begun?: CallRecord;
  /** What the caller has said, without what is laid under it. */
  readonly given: CallOptions;
  readonly options: CallOptions;
  /** Those who hear every call of the agent. */
  readonly listener: Listener;
  readonly input: Input;
  /** Where the call sits in its session; a call without a session remembers nothing. */
  readonly session:
    { readonly seat: Seat; readonly memory: Memory; readonly record: SessionRecord } | undefined;
}
