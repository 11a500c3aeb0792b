import type { Observable, SchedulerLike } from 'rxjs';
import type { CallInfo } from './call-info.js';
import type { Demand } from './demand.js';
import type { Hooks } from './hooks.js';
import type { Interruption } from './interruption.js';
import type { Memory } from './memory.js';
import type { Model, RequestOptions, RetryBudget } from './model.js';
import type { Validator } from './schema.js';
import type { ToolContext } from './tool.js';
import type { Toolkit } from './toolkit.js';
import type { Trampoline } from './trampoline.js';

/** What the loop may do when its iterations are used up. */
export type OnLimit = 'answer' | 'error' | 'partial';

/** How long things may take, in milliseconds. What is absent may take for ever. */
export interface Timeouts {
  /** The whole call: hooks, model and tools. */
  readonly callMs?: number;
  /** Each turn of the loop: the model, the tools it asks for, and what interceptors do. */
  readonly iterationMs?: number;
  /** From a request to the model to the first content. Each attempt has it anew. */
  readonly firstChunkMs?: number;
  /** From one piece of content to the next. It and `firstChunkMs` stand still while demand is closed. */
  readonly chunkMs?: number;
  /** Each use of a tool, from its validation to its end. Default: 60,000. */
  readonly toolMs?: number;
  /** Single tools by name, instead of `toolMs`. */
  readonly tools?: Readonly<Record<string, number>>;
}

/** The numbers of one call. */
export interface Limits {
  readonly maxIterations: number;
  readonly onLimit: OnLimit;
  readonly timeouts: Timeouts;
  /** How many tools of a batch run at once. */
  readonly parallel: number;
  /** Characters that an observation may have. */
  readonly maxObservation: number;
}

/** What the phases of one call share. A phase asks for the part it uses. */
export interface Context {
  readonly call: CallInfo;
  readonly model: Model;
  readonly toolkit: Toolkit;
  readonly memory: Memory;
  readonly hooks: Hooks;
  readonly interruption: Interruption;
  readonly demand: Demand;
  readonly scheduler: SchedulerLike;
  /** Runs the turns of a whole family of calls, one after the other. */
  readonly turns: Trampoline;
  readonly limits: Limits;
  /** What a whole family of calls may send again. It only shrinks. */
  readonly retryBudget: RetryBudget;
  /** What the answer must be, where it must be something. */
  readonly output: Validator | undefined;
  /** What every request says beside its messages. */
  readonly request: RequestOptions;
  /** The tool uses that the conversation knows: ids must not repeat. It only grows. */
  readonly toolUseIds: Set<string>;
  /** Runs a step of this call through the journal; `id` is its position, such as `3/0`. */
  step$<T>(id: string, work: () => Observable<T>): Observable<T>;
  /** What the run of one tool is lent. */
  lend(toolUseId: string, iteration: number, signal: AbortSignal): ToolContext;
}
