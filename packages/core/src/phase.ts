import {
  concatMap,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
  type SchedulerLike,
} from 'rxjs';
import type { CallInfo } from './call-info.js';
import type { Demand } from './demand.js';
import type { Hooks } from './hooks.js';
import type { Interruption } from './interruption.js';
import type { Memory } from './memory.js';
import type { Model, RequestOptions } from './model.js';
import type { OpenRun, Run } from './run.js';
import type { ToolContext } from './tool.js';
import type { Toolkit } from './toolkit.js';

/** What the loop may do when its iterations are used up. */
export type OnLimit = 'answer' | 'error' | 'partial';

/** How long things may take, in milliseconds. What is absent may take for ever. */
export interface Timeouts {
  /** The whole call: hooks, model and tools. */
  readonly callMs?: number;
  /** Each run of a tool, from start to end. Default: 60,000. */
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
  readonly limits: Limits;
  /** What every request says beside its messages. */
  readonly request: RequestOptions;
  /** The tool uses that the conversation knows: ids must not repeat. It only grows. */
  readonly toolUseIds: Set<string>;
  /** Runs a step of this call through the journal; `id` is its position, such as `3/0`. */
  step$<T>(id: string, work: () => Observable<T>): Observable<T>;
  /** What the run of one tool is lent. */
  lend(toolUseId: string, iteration: number, signal: AbortSignal): ToolContext;
}

/** An operator on the run: one step of a turn. */
export type Phase = MonoTypeOperatorFunction<Run>;

/** Makes a phase for one call. */
export type PhaseFactory = (context: Context) => Phase;

/** Makes a phase that works on an open run; an ended one passes it untouched. */
export const phase = (work: (run: OpenRun) => Observable<Run>): Phase =>
  concatMap((run) => (run.status === 'open' ? work(run) : of(run)));
