import type { Observable, SchedulerLike } from 'rxjs';
import type { CallInfo } from './call-info.js';
import type { Demand } from './demand.js';
import type { Hooks } from './hooks.js';
import type { Interruption } from './interruption.js';
import type { LazyAbort } from './lazy-abort.js';
import type { RunStep } from './journal/step.js';
import type { Limits } from './limits.js';
import type { Memory } from './memory.js';
import type { ToolUseBlock, UserMessage } from './message.js';
import type { Model, RequestOptions, RetryBudget } from './model.js';
import type { RetrievedPassage } from './retrieval/retriever.js';
import type { OpenRun } from './run.js';
import type { Validator } from './schema.js';
import type { Steering } from './steering.js';
import type { Toolkit } from './toolkit.js';
import type { ContextValues } from './tools/context-key.js';
import type { Trampoline } from './trampoline.js';
import type { Usage } from './usage.js';
import type { Approver, ToolContext } from './tools/types.js';

/** What was spent before a call was broken off: a request of the model, or a tool that was run. */
export type Replayed =
  { readonly usage: Usage; readonly model: string } | { readonly toolCalls: number };

/** What the phases of one call share. A phase asks for the part it uses. */
export interface Context {
  readonly call: CallInfo;
  readonly model: Model;
  /** Puts around a model, whichever is asked for the call, what counts its requests, such as those of `withBudget`. Every request goes through it. */
  meter(model: Model): Model;
  /** The tools there are just now. */
  readonly toolkit: Toolkit;
  readonly memory: Memory;
  readonly hooks: Hooks;
  readonly interruption: Interruption;
  /** What is said to the call while it runs. Only a call of a session can be spoken to. */
  readonly steering: Steering | undefined;
  /** Leads what was said to the call through the interceptors of `prepare`, and gives it its place among the input; emits nothing where one of them would not have it. */
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
  /** Decide on every run of a tool: those of the call, and those of the calls above it. */
  readonly approvers: readonly Approver[];
  /** Notes that somebody decides on a tool use, and gives what takes that back. */
  awaitApproval(toolUse: ToolUseBlock, iteration: number): () => void;
  /** What the answer must be, where it must be something. */
  readonly output: Validator | undefined;
  /** What has been found for the call, in the order of the numbers that the model cites. */
  readonly sources: readonly RetrievedPassage[];
  /** What every request says beside its messages and tools. */
  readonly request: RequestOptions;
  /** The tool uses that the conversation knows: ids must not repeat. It only grows. */
  readonly toolUseIds: Set<string>;
  /** Runs a step of this call through the journal; `id` is its position, such as `3/0`. */
  readonly step$: RunStep;
  /** Tells whether such a step may be written down: where nothing is to be done and nothing was, it can be left out. */
  readonly mayBeWritten: (id: string) => boolean;
  /** Tells whether such a step is written down: the call goes through it again. */
  readonly isWritten: (id: string) => boolean;
  /** Tells the calls above what a request has cost, when it is over: their tools have made this call. */
  readonly reportUsage: (usage: Usage) => void;
  /** Tells those who count requests and tools, such as `withBudget`, of one that the journal answers. */
  readonly countReplayed: (spent: Replayed) => void;
  /** Has just these groups of tools active, as a tool has left them that is not run again. */
  activateOnly(groups: readonly string[]): void;
  /** What the run of one tool is lent. */
  lend(toolUseId: string, run: OpenRun, abort: LazyAbort, purpose?: 'approval'): ToolContext;
}
