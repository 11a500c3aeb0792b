import type { ToolRun } from '../reply.js';
import type { Call } from '../call/call.js';
import type { LongTermMemory } from './long-term-memory.js';
import type { ScopeOfCall } from './scope-of-call.js';

/**
 * Who looks after a memory: the framework, before and behind each call (`static`), the model, by tools (`agent`), or `both`.
 */
export type LongTermMemoryMode = 'static' | 'agent' | 'both';

/** How an agent remembers its users. */
export interface LongTermMemoryOptions {
  /** Where it is kept: `inProcessLongTermMemory()`, or a store. Agents may share one. */
  readonly memory: LongTermMemory;
  /** Default: `static`. */
  readonly mode?: LongTermMemoryMode;
  /**
   * Whose memory a call has, by what its program says of it: `{ userId }` is recalled in every session of the user, `{ userId, sessionId }` in this
   * one. A call of which it throws has no memory: a `warning` says so. Default: the user of `metadata.userId`, in every session.
   */
  readonly scope?: ScopeOfCall;
  /** Entries that a call is shown at most. Default: 3. */
  readonly top?: number;
  /**
   * Whether the model picks the entries that help the most with what was asked: one more request for each call that finds more than `top`,
   * charged to `rankMemories`. A model that fails is a `warning`, and the search decides. Default: false, the search decides.
   */
  readonly rank?: boolean;
  /** Entries that it picks from. Default: 10. */
  readonly candidates?: number;
  /**
   * Whether it is recalled anew, for the step alone, when the model takes up another step of its plan: one more search each, and one more request where
   * `rank` is set. Default: true, for agents that keep a plan.
   */
  readonly recallForSteps?: boolean;
  /**
   * Where the model reads what is recalled before the loop: before the history, or right before what was asked, so that providers can cache the history
   * where it changes from call to call. Default: `beforeHistory`, unless `retrieve` places what it finds before the input: then both stand there.
   */
  readonly placement?: 'beforeHistory' | 'beforeInput';
  /** What is looked for before the loop; nothing, where it is blank. Default: what was asked, as text. */
  readonly query?: (call: Call) => string;
  /** How long the memory may take each time, in milliseconds: a call waits for it. Default: 5,000. */
  readonly timeoutMs?: number;
  /** Says what is remembered of one run of a tool; nothing, where it gives none. `false`: nothing of any. Default: name, input and output, cut. */
  readonly summariseTool?: ((run: ToolRun) => string | undefined) | false;
  /** Whether the model has a tool to forget entries, too. What a model reads may talk it into using it. Default: false. */
  readonly forgetTool?: boolean;
}

/** The same, with the defaults. */
export type MemorySettings = Required<LongTermMemoryOptions>;

/** Whether the framework recalls and records. */
export const isStatic = ({ mode }: MemorySettings): boolean => mode !== 'agent';

/** Whether the model has tools. */
export const isAgentic = ({ mode }: MemorySettings): boolean => mode !== 'static';
