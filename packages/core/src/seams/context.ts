import type { Observable, SchedulerLike } from 'rxjs';
import type { CallInfo } from '../values/reply.js';
import type { Demand } from '../flow/demand.js';
import type { Hooks } from './hooks.js';
import type { Holds, Interruption } from '../flow/interruption.js';
import type { LazyAbort } from '../flow/lazy-abort.js';
import type { Locals, Perform } from '../step.js';
import type { Limits } from '../flow/deadline.js';
import type { Memory } from '../values/memory.js';
import type { UserMessage } from '../values/message.js';
import type { Model, RequestOptions, RetryBudget } from '../models/model.js';
import type { Findings, AnswerForm } from './call.js';
import type { OpenRun } from '../run.js';
import type { Toolkit } from '../tools/toolkit.js';
import type { ContextValues } from '../tools/context-key.js';
import type { Trampoline } from '../flow/trampoline.js';
import type { ToolContext } from '../tools/types.js';

/** To whom a context is lent: a tool use in a step, and what for, if not for its run. */
export interface Lending {
  readonly toolUseId: string;
  readonly stepId: string;
  readonly purpose?: string | undefined;
  /** What its calls say is said for the call that lends it. */
  readonly speaks?: boolean;
}

/** What the phases of one call share. A phase asks for the part it uses. */
export interface Context {
  readonly call: CallInfo;
  readonly model: Model;
  /** Wraps a model, whichever is asked for the call, in the call's layers. Every request goes through it. */
  throughLayers(model: Model): Model;
  /** The tools there are just now. */
  readonly toolkit: Toolkit;
  readonly memory: Memory;
  readonly hooks: Hooks;
  readonly interruption: Interruption;
  /** Whether an interrupt can come. */
  readonly isInterruptible: boolean;
  /** What must end before a step is cut. */
  readonly holds: Holds;
  /** Runs messages that reach the call late through the `prepare` interceptors. Completes empty if one of them vetoes. */
  prepareInput$(
    messages: readonly UserMessage[],
    place: string,
  ): Observable<readonly UserMessage[]>;
  readonly demand: Demand;
  readonly scheduler: SchedulerLike;
  /** Runs the turns of a whole family of calls, one after the other. */
  readonly turns: Trampoline;
  readonly limits: Limits;
  /** What a whole family of calls may send again. It only shrinks. */
  readonly retryBudget: RetryBudget;
  /** What tools find under context keys. */
  readonly values: ContextValues;
  /** What the answer must be, where it must be something. */
  readonly output: AnswerForm | undefined;
  /** What layers have found for the call, by name. */
  readonly found: Findings;
  /** What every request says beside its messages and tools. */
  readonly request: RequestOptions;
  /** The tool uses that the conversation knows: ids must not repeat. It only grows. */
  readonly toolUseIds: Set<string>;
  /** Performs a step of the call: the only way to ask the outside world. */
  readonly perform: Perform;
  /** Returns the value of a cell of the call or of its family. */
  readonly local: Locals;
  /** Has just these groups of tools active, as a tool has left them that is not run again. */
  activateOnly(groups: readonly string[]): void;
  /** What the run of one tool is lent. */
  toolContext(lending: Lending, run: OpenRun, abort: LazyAbort): ToolContext;
}
