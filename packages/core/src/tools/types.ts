import type { Observable, ObservableInput, SchedulerLike } from 'rxjs';
import type { Message } from '../message.js';
import type { Demand } from '../demand.js';
import type { JsonSchema } from '../schema/json-schema.js';
import type { HiddenInput, Validation } from '../schema.js';
import type { ToolEmission } from '../tool-output.js';
import type { ContextKey, ContextValues } from './context-key.js';

/** What a call lends to one run of a tool. Pass it on as `parent` where the tool calls another agent. */
export interface ToolContext {
  readonly callId: string;
  readonly toolUseId: string;
  readonly sessionId?: string;
  /**
   * The same for each attempt of this use, also when a resumed call runs it again, and of no other use: hand it to services that
   * take one, and they do once what is asked twice.
   */
  readonly idempotencyKey: string;
  /** The names of the agents, from the outermost to the one that uses the tool. */
  readonly agent: readonly string[];
  readonly iteration: number;
  /** The conversation as far as it had come when the tool was asked for, that message included; nothing that interceptors made of it for the model. */
  readonly messages: readonly Message[];
  /** What phases keep in the run, such as a plan: `planKey.of(context)`. */
  readonly kept: Readonly<Record<string, unknown>>;
  /** Aborts when the run is cut or fails: nobody waits for it any more. */
  readonly signal: AbortSignal;
  /** While it is closed, nothing more is pulled from an AsyncIterable that the tool returns. */
  readonly demand: Demand;
  /** Every wait runs on it. */
  readonly scheduler: SchedulerLike;
  /** What the caller gave with the call. */
  readonly metadata: Readonly<Record<string, string>>;
  /** What the call, its session or its agent gives under this key: the nearest counts. Throws where none of them does. */
  get<Value>(key: ContextKey<Value>): Value;
  /** The tools of the session, or of this call where it has none: a tool may change them. */
  readonly toolkit: LiveToolkit;
}

/** What holds for every run of a tool. */
export interface ToolPolicy {
  /** Runs while no other tool of its batch does. Default: false. */
  readonly exclusive?: boolean;
  /**
   * Whether a run may begin: yes or no, or who decides, with the valid input in hand. An approver may return, promise or emit
   * its verdict; it may take its time, and may change the input. Default: yes.
   */
  readonly approve?: boolean | Approver;
  /** How long a run may take, all attempts together, in milliseconds. Default: what the call says for its tools. */
  readonly timeoutMs?: number;
  /** How the tool is run again after an error that `transient` has marked. Each time is told by a `warning` event. Default: not at all. */
  readonly retry?: ToolRetry;
  /**
   * Parameters that the model does not give: the `extras` of an earlier tool's output do, if they have them. The model does not see
   * these parameters. Default: none.
   */
  readonly accepts?: readonly string[];
  /**
   * Two runs with the same `idempotencyKey` do no more than one: a resumed call runs it again where it was broken off. Default: false, and `onUncertain` says what is
   * done then.
   */
  readonly idempotent?: boolean;
  /** Answers the very same use with the result of the one before, within a call. Default: false. */
  readonly dedupe?: boolean;
}

/** Something that a model may ask to run. `tool()` makes one. */
export interface Tool extends ToolPolicy {
  readonly name: string;
  readonly description: string;
  /** What a model is shown. */
  readonly inputSchema: JsonSchema;
  /** Parameters that the program gives: what anybody else says of them counts for nothing. */
  readonly hidden?: readonly string[];
  /** What of the schema is not held to, and why. */
  readonly warnings?: readonly string[];
  /**
   * Emits one verdict on what the model gave, and completes. `values` are those of the call; `hidden` is laid over what the model gave.
   */
  validation$(input: unknown, values?: ContextValues, hidden?: HiddenInput): Observable<Validation>;
  /** Runs on a valid input. Cold. An error becomes an observation for the model. */
  run$(input: unknown, context: ToolContext): Observable<ToolEmission>;
}

/** How a tool is run again that failed for a moment. */
export interface ToolRetry {
  /** Runs in all, the first among them. Default: 3. */
  readonly attempts?: number;
  /** How long is waited before the second, in milliseconds. Default: 800. */
  readonly backoffMs?: number;
  /** How the wait grows: by so much each time (`linear`, the default), or to twice as much (`exponential`). */
  readonly growth?: 'linear' | 'exponential';
}

/** What is to be decided: whether a tool may run with this input. */
export interface ApprovalRequest<Value = unknown> {
  readonly tool: string;
  readonly toolUseId: string;
  /** Valid, and with all that the program has set: as it was said, which is what another input has to be like. */
  readonly input: Readonly<Record<string, unknown>>;
  /** What the tool's schema makes of the input: this is what the tool would get. */
  readonly value: Value;
  readonly context: ToolContext;
  /** Emits what would be wrong with another input, one line a parameter, and completes: an empty list where the tool would take it. */
  problems$(input: unknown): Observable<readonly string[]>;
}

/** Whether it may, and why not; or with which input instead. */
export type Verdict =
  | boolean
  | {
      readonly approved: boolean;
      /** What the tool is to be given instead of what the model gave. It is validated again. */
      readonly input?: unknown;
      /** Why not: the model is told. */
      readonly reason?: string;
    };

/**
 * Decides on a run of a tool: at once, or when somebody has been asked. What says nothing denies, and so does what throws; the error is a
 * `handlerError` event, and the model does not see it.
 */
export type Approver<Value = unknown> = (
  request: ApprovalRequest<Value>,
) => Verdict | ObservableInput<Verdict>;

/** What tools are given as: one by one, or in groups. */
export type ToolEntry = Tool | ToolGroup;

/** What a group of tools is made of. */
export interface ToolGroupDefinition {
  /** What the model calls the group. */
  readonly name: string;
  /** Tells the model what its tools are for. */
  readonly description: string;
  readonly tools: readonly Tool[];
  /** Whether its tools can be used from the beginning. Default: false. */
  readonly active?: boolean;
  /** Whether the model may activate and deactivate it, by the tool `manage_tools`; else the program alone may. Default: true. */
  readonly managed?: boolean;
}

/** Tools that come and go together. */
export type ToolGroup = Required<ToolGroupDefinition>;

/**
 * The tools of a session, or of a call without one. They may change while calls run: the next request of each has what there is then, and a
 * tool that is gone is not run any more. Each change is made as a whole, or throws a `config` error and changes nothing.
 */
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
