import type { SchedulerLike } from 'rxjs';
import type { CallInfo } from '../values/reply.js';
import type { Demand } from '../flow/demand.js';
import type { Hooks } from './hooks.js';
import type { Holds, Interruption } from '../flow/interruption.js';
import type { LazyAbort } from '../flow/lazy-abort.js';
import type { Locals, Perform } from '../step.js';
import type { Limits } from '../flow/deadline.js';
import type { Memory } from '../values/memory.js';
import type { Model, RequestOptions } from '../models/model.js';
import type { Findings } from './call.js';
import type { OpenRun } from '../run.js';
import type { Toolkit } from '../tools/toolkit.js';
import type { ContextValues } from '../tools/context-key.js';
import type { ToolContext } from '../tools/types.js';

/** The receiver of a tool context: the tool call, its step, and the purpose if it is not the run itself. */
export interface Lending {
  readonly toolCallId: string;
  readonly stepId: string;
  readonly purpose?: string | undefined;
  /** The name of a tool that cannot run again to continue its calls. */
  readonly unmarked?: string | undefined;
  /** Calls made with it speak for this call. */
  readonly speaks?: boolean;
}

/** The context of the phases of a call. A phase declares the part it uses. */
export interface Context {
  readonly call: CallInfo;
  /** The calls from the root call to this one. */
  readonly lineage: readonly CallInfo[];
  readonly model: Model;
  /** Wraps a model in the layers of the call. Every request goes through it. */
  throughLayers(model: Model): Model;
  readonly toolkit: Toolkit;
  readonly memory: Memory;
  readonly hooks: Hooks;
  readonly interruption: Interruption;
  /** Whether the call can be interrupted. */
  readonly isInterruptible: boolean;
  /** Work that must end before a step is cut. */
  readonly holds: Holds;
  readonly demand: Demand;
  readonly scheduler: SchedulerLike;
  readonly limits: Limits;
  readonly values: ContextValues;
  readonly found: Findings;
  /** Options of every request, without messages and tools. */
  readonly request: RequestOptions;
  /** Performs a step: the only way to ask the outside world. */
  readonly perform: Perform;
  /** Returns the value of a cell of the call or of its family. */
  readonly local: Locals;
  /** Activates exactly these groups of tools, to replay the effect of a recorded tool call. */
  activateOnly(groups: readonly string[]): void;
  /** Creates the context of one tool call. */
  toolContext(lending: Lending, run: OpenRun, abort: LazyAbort): ToolContext;
}
