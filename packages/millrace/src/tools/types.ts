import type { Observable, SchedulerLike } from 'rxjs';
import type { AnyRun, CallInfo, CallLabels } from '../values/reply.js';
import type { ContentBlock, Message, ToolCallBlock } from '../values/message.js';
import type { Demand } from '../flow/demand.js';
import type { VendorOptions } from '../models/model.js';
import type { ReportedPayload } from '../events.js';
import type { Complete } from '../values/options.js';
import type { HiddenInput, JsonSchema, Validation } from '../values/schema.js';
import type { Locals } from '../step.js';
import type { ToolEmission, ToolOutput } from '../values/tool-output.js';
import type { ContextKey, ContextValues } from './context-key.js';

/** The context of a running tool. Pass it as `parent` if the tool calls another agent. */
export interface ToolContext extends CallLabels {
  readonly callId: string;
  readonly toolCallId: string;
  /**
   * A key for services that deduplicate requests: the same for each attempt of this tool call, also in a resumed call,
   * and never repeated, even if a `callId` is.
   */
  readonly idempotencyKey: string;
  /** The names of the agents, from the outermost to the one that called the tool. */
  readonly agent: readonly string[];
  readonly iteration: number;
  /** The conversation up to the message with the tool call, without the edits of interceptors. */
  readonly messages: readonly Message[];
  /** State of phases, such as a plan: `planKey.of(context)`. */
  readonly kept: Readonly<Record<string, unknown>>;
  /** Aborts when the run is cut or fails. */
  readonly signal: AbortSignal;
  /** While it is closed, an AsyncIterable that the tool returned is not pulled. */
  readonly demand: Demand;
  /** The scheduler for every wait. */
  readonly scheduler: SchedulerLike;
  /** The `metadata` option of the call. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Returns the value of a context key: the call overrides its layers, these the agent. Throws if it has no value. */
  get<Value>(key: ContextKey<Value>): Value;
  /** The tools of the call, which a tool may change. */
  readonly toolkit: LiveToolkit;
}

/** Rules for every run of a tool. */
export interface ToolPolicy {
  /** Runs while no other tool of its batch does. Default: false. */
  readonly exclusive?: boolean | undefined;
  /** Maximum duration of a run with all its attempts, in milliseconds. Default: `timeouts.toolMs` of the call. */
  readonly timeoutMs?: number | undefined;
  /** How to retry after an error marked with `transient`. Each retry is reported by a `warning`. Default: no retry. */
  readonly retry?: ToolRetry | undefined;
  /** Running twice with the same `idempotencyKey` has the effect of once: a resume may run it again, if it was so when the call started. Default: false. */
  readonly idempotent?: boolean | undefined;
  /**
   * Its run calls agents, with its context as their `parent`. If one of them waits, the tool runs again to continue it: its own
   * effects should be tools of the agents. Without it, a call below does not suspend those above (`suspendBelow`). Default: false.
   */
  readonly callsAgents?: boolean | undefined;
  /** Answers an identical tool call with the earlier result, within a call. Default: false. */
  readonly dedupe?: boolean | undefined;
  /** Further fields of the tool in requests, by vendor. Each vendor gets its own. Default: none. */
  readonly vendorOptions?: VendorOptions | undefined;
}

/** A tool that a model can call. Created by `tool()`. */
export interface Tool<out Value = unknown, out Run extends AnyRun = AnyRun> extends ToolPolicy {
  readonly name: string;
  readonly description: string;
  /** The schema that the model gets. */
  readonly inputSchema: JsonSchema;
  /** The schema of its results, for MCP clients. Absent if the tool has none, or if JSON cannot express it. */
  readonly outputSchema?: JsonSchema;
  /** Parameters from the `extras` of an earlier tool, see `acceptExtras`. Hidden from the model. Default: none. */
  readonly accepts?: readonly string[];
  /** Parameters that the program sets. Values from a model or a decider are ignored. */
  readonly hidden?: readonly string[];
  /** Decide on each tool call before it runs, in order. */
  readonly deciders?: readonly Decider[];
  /** Parts of the schema that are not checked, and why. */
  readonly warnings?: readonly string[];
  /** Throws a `config` error if a call lacks what the tool needs. Called when a call with the tool starts. */
  readonly assertReady?: ((call: CallOfTool) => void) | undefined;
  /** Validates the model's arguments: emits one result and completes. Cold. `hidden` overrides the model's values. */
  validation$(input: unknown, values?: ContextValues, hidden?: HiddenInput): Observable<Validation>;
  /**
   * Checks the content of a result that a client brings, as what `run` returns: emits the output of the valid value, or an error for
   * the model, and completes. Absent without a schema of results.
   */
  readonly result$?: (content: readonly ContentBlock[]) => Observable<ToolOutput>;
  /** The type of a valid input. Never set: it exists for inference only. */
  readonly type?: Value;
  /** The type of its calls. Never set: it exists for inference only. */
  readonly runs?: Run;
  /** Runs on a valid input. Cold. An error becomes a tool result for the model. */
  run$(input: unknown, context: ToolContext): Observable<ToolEmission>;
}

/** The part of a starting call that a tool can check. */
export interface CallOfTool {
  readonly info: CallInfo;
  readonly local: Locals;
  readonly layers: readonly object[];
  readonly values: ContextValues;
}

/** Decides on a tool call with valid arguments before it runs: accepts, edits or refuses it. */
export interface Decider {
  /** Its name in `decidedBy` and in `inputEdited`. */
  readonly name: string;
  /** Emits one value. An error is an error of the tool. After an edit by another decider, it is asked again. */
  readonly decide$: (use: PendingUse, checked: ReadyUse) => Observable<CheckedUse>;
}

/** The tool call that a decider decides on. */
export interface PendingUse {
  readonly tool: Tool;
  readonly lent: ToolContext;
  /** From 1. Each edit starts a round. */
  readonly round: number;
  /** Validates the tool call with other arguments, or as a call of another tool. */
  readonly check$: (toolCall: ToolCallBlock, as?: Tool) => Observable<CheckedUse>;
  readonly report: (event: ReportedPayload) => void;
  readonly local: Locals;
}

export interface ReadyUse {
  readonly status: 'ready';
  readonly toolCall: ToolCallBlock;
  /** The model's input, with the values that the program sets. */
  readonly input: Readonly<Record<string, unknown>>;
  /** The input as the schema transformed it. */
  readonly value: unknown;
}

export type CheckedUse =
  | ReadyUse
  | {
      readonly status: 'refused';
      readonly toolCall: ToolCallBlock;
      readonly problems: readonly string[];
      readonly why: string;
    };

export interface ToolRetry {
  /** Maximum number of runs, including the first. Default: 3. */
  readonly attempts?: number | undefined;
  /** The delay before the second run, in milliseconds. Default: 800. */
  readonly backoffMs?: number | undefined;
  /** How the delay grows: by `backoffMs` each time (`linear`, the default), or doubling (`exponential`). */
  readonly growth?: 'linear' | 'exponential' | undefined;
}

export type ToolEntry = Tool | ToolGroup;

/** The calls of these tools. */
export type RunsOf<Tools extends readonly ToolEntry[]> = [Tools[number]] extends [never]
  ? AnyRun
  : Exclude<Tools[number]['runs'], undefined>;

export interface ToolGroupDefinition<Tools extends readonly Tool[] = readonly Tool[]> {
  /** The name for the model. */
  readonly name: string;
  /** Describes its tools to the model. */
  readonly description: string;
  readonly tools: Tools;
  /** Whether it is active at the start. Default: false. */
  readonly active?: boolean | undefined;
  /** Whether the model may activate and deactivate it, with the tool `manage_tools`. Default: true. */
  readonly managed?: boolean | undefined;
}

export interface ToolGroup<out Run extends AnyRun = AnyRun> extends Complete<ToolGroupDefinition> {
  /** The type of the calls of its tools. Never set: it exists for inference only. */
  readonly runs?: Run;
  /** Creates the tool that activates and deactivates these groups. */
  readonly manager?: (groups: readonly ToolGroup[]) => Tool;
}

/** The tools of a call. Changes apply from the next request on; a failing one throws `config` and has no effect. */
export interface LiveToolkit {
  /** The names of the usable tools. */
  readonly names: readonly string[];
  readonly groups: readonly ToolGroup[];
  /** Adds tools and groups. An existing name is an error. */
  add(...entries: readonly ToolEntry[]): void;
  remove(...names: readonly string[]): void;
  replace(...tools: readonly Tool[]): void;
  activate(...groups: readonly string[]): void;
  deactivate(...groups: readonly string[]): void;
}
