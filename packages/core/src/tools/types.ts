import type { Observable, SchedulerLike } from 'rxjs';
import type { CallLabels } from '../values/reply.js';
import type { Message, ToolUseBlock } from '../values/message.js';
import type { Demand } from '../flow/demand.js';
import type { ReportedPayload } from '../events.js';
import type { JsonSchema } from '../values/schema.js';
import type { HiddenInput, Validation } from '../values/schema.js';
import type { Locals } from '../step.js';
import type { ToolEmission } from '../values/tool-output.js';
import type { ContextKey, ContextValues } from './context-key.js';

/** What a run of a tool gets. Pass it on as `parent` if the tool calls another agent. */
export interface ToolContext extends CallLabels {
  readonly callId: string;
  readonly toolUseId: string;
  /** The same for each attempt of this tool call, also after a resume, and never that of another one, even if a `callId` is used again: for services that accept one act only once. */
  readonly idempotencyKey: string;
  /** The names of the agents, from the outermost to the one that uses the tool. */
  readonly agent: readonly string[];
  readonly iteration: number;
  /** The conversation up to the message that asks for the tool, without the edits of interceptors. */
  readonly messages: readonly Message[];
  /** What phases keep in the run, such as a plan: `planKey.of(context)`. */
  readonly kept: Readonly<Record<string, unknown>>;
  /** Aborts when the run is cut or fails. */
  readonly signal: AbortSignal;
  /** While it is closed, nothing more is pulled from an AsyncIterable that the tool returns. */
  readonly demand: Demand;
  /** Every wait runs on it. */
  readonly scheduler: SchedulerLike;
  /** What the caller gave with the call. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Returns the value of a context key: the call overrides its layers, and these its agent. Throws if there is none. */
  get<Value>(key: ContextKey<Value>): Value;
  /** The tools that the call has. A tool may change them. */
  readonly toolkit: LiveToolkit;
}

/** What holds for every run of a tool. */
export interface ToolPolicy {
  /** Runs while no other tool of its batch does. Default: false. */
  readonly exclusive?: boolean;
  /** Maximum duration of a run with all its attempts, in milliseconds. Default: `timeouts.toolMs` of the call. */
  readonly timeoutMs?: number;
  /** How to retry after an error marked with `transient`. Each retry is reported by a `warning`. Default: no retry. */
  readonly retry?: ToolRetry;
  /** Parameters that come from the `extras` of an earlier tool's output, as `acceptExtras` says. The model does not see them. Default: none. */
  readonly accepts?: readonly string[];
  /** Running twice with the same `idempotencyKey` has the effect of running once, so a resumed call may run it again. Default: false. */
  readonly idempotent?: boolean;
  /** Answers an identical tool call with the earlier result, within a call. Default: false. */
  readonly dedupe?: boolean;
}

/** Something that a model may ask to run. `tool()` makes one. */
export interface Tool<out Value = unknown> extends ToolPolicy {
  readonly name: string;
  readonly description: string;
  /** What a model is shown. */
  readonly inputSchema: JsonSchema;
  /** Parameters that the program sets. Values from a model or a decider are ignored. */
  readonly hidden?: readonly string[];
  /** Decide on each run before it begins, one after the other: `requireApproval` adds one. */
  readonly deciders?: readonly Decider[];
  /** What of the schema is not held to, and why. */
  readonly warnings?: readonly string[];
  /** Validates what the model passed: emits one result and completes. `hidden` overrides the model's values. */
  validation$(input: unknown, values?: ContextValues, hidden?: HiddenInput): Observable<Validation>;
  /** Says the type of a valid input; never there. */
  readonly type?: Value;
  /** Runs on a valid input. Cold. An error becomes an observation for the model. */
  run$(input: unknown, context: ToolContext): Observable<ToolEmission>;
}

/** Decides on a tool call whose arguments are valid, before it runs: passes it on, changes it or refuses it. */
export interface Decider {
  /** Names the calls that it makes. */
  readonly name: string;
  /** Emits one value. An error is an error of the tool. */
  readonly decide$: (use: PendingUse, checked: ReadyUse) => Observable<CheckedUse>;
}

/** What a decider gets of the call. */
export interface PendingUse {
  readonly tool: Tool;
  /** For calls that it makes. */
  readonly lent: ToolContext;
  /** Validates the tool call with other arguments. */
  readonly check$: (toolUse: ToolUseBlock) => Observable<CheckedUse>;
  readonly report: (event: ReportedPayload) => void;
  readonly local: Locals;
}

/** A tool call that is valid. */
export interface ReadyUse {
  readonly status: 'ready';
  readonly toolUse: ToolUseBlock;
  /** The input as it was said, with what the program has set. */
  readonly input: Readonly<Record<string, unknown>>;
  /** What the schema has made of it. */
  readonly value: unknown;
}

/** A tool call that was validated. */
export type CheckedUse =
  | ReadyUse
  | {
      readonly status: 'refused';
      readonly toolUse: ToolUseBlock;
      readonly problems: readonly string[];
      readonly why: string;
    };

/** How a tool is run again that failed for a moment. */
export interface ToolRetry {
  /** Runs in all, the first among them. Default: 3. */
  readonly attempts?: number;
  /** How long is waited before the second, in milliseconds. Default: 800. */
  readonly backoffMs?: number;
  /** How the wait grows: by so much each time (`linear`, the default), or to twice as much (`exponential`). */
  readonly growth?: 'linear' | 'exponential';
}

/** A tool, or a group of tools. */
export type ToolEntry = Tool | ToolGroup;

/** The definition of a group of tools. */
export interface ToolGroupDefinition {
  /** What the model calls the group. */
  readonly name: string;
  /** Tells the model what its tools are for. */
  readonly description: string;
  readonly tools: readonly Tool[];
  /** Whether its tools can be used from the beginning. Default: false. */
  readonly active?: boolean;
  /** Whether the model may activate and deactivate it, with the tool `manage_tools`. Default: true. */
  readonly managed?: boolean;
}

/** Tools that come and go together. */
export interface ToolGroup extends Required<ToolGroupDefinition> {
  /** Makes the tool by which the model activates and deactivates these groups. */
  readonly manager?: (groups: readonly ToolGroup[]) => Tool;
}

/** The tools that a call has. Changes apply to the next request, also of running calls. Each is made as a whole, or throws a `config` error and changes nothing. */
export interface LiveToolkit {
  /** The names of those that can be used. */
  readonly names: readonly string[];
  readonly groups: readonly ToolGroup[];
  /** Adds tools and groups. A name that is there already is an error. */
  add(...entries: readonly ToolEntry[]): void;
  /** Takes tools and groups away by their names. */
  remove(...names: readonly string[]): void;
  /** Puts tools in the place of those of the same names. */
  replace(...tools: readonly Tool[]): void;
  /** Makes the tools of groups usable. */
  activate(...groups: readonly string[]): void;
  deactivate(...groups: readonly string[]): void;
}
