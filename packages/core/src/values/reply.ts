import type { AssistantMessage, Finish, Suspension } from './message.js';
import type { Usage, UsageByPhase } from './usage.js';

export const endReasons = [
  'answer',
  'toolFinal',
  'maxIterations',
  'budget',
  'interrupted',
  'suspended',
  'stopped',
  'truncated',
  'refused',
] as const;

/** Why a loop ended without an error. */
export type EndReason = (typeof endReasons)[number];

/** One run of a tool, as a reply tells it. */
export interface ToolRun {
  readonly toolUseId: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** The text of its result, as the model saw it. */
  readonly output: string;
  readonly isError: boolean;
  /** How long it took, in milliseconds. */
  readonly ms: number;
}

/** How a call ended: the last message of the assistant, and what it took to get there. */
export interface Reply<Output = unknown> extends AssistantMessage {
  /** Why the loop ended. Every end that is not an error is a value here. */
  readonly reason: EndReason;
  /** Why the provider ended its last message. */
  readonly finish: Finish;
  /** Reasoning calls of the loop, the closing one not counted. */
  readonly iterations: number;
  /** What the answer says, validated, where the call has an `output` schema; absent where it ended otherwise than by an answer. */
  readonly output?: Output;
  readonly toolUses: readonly ToolRun[];
  /** Tool uses whose results are still to come, where the reason is `suspended`. */
  readonly suspensions?: readonly Suspension[];
  /** Added up over every request of the call, and of the calls below it that its tools and steps have made, at any depth, also where these have failed. */
  readonly usage: Usage;
  /** What of it each phase has cost: `reasoning`, `closing`, those beside the loop such as `reflect`, and `acting` or `steps` for the calls below. */
  readonly usageByPhase: UsageByPhase;
  /** When the call began, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** From subscription to the end, in milliseconds. */
  readonly elapsedMs: number;
}

/** What calls are known by beside their ids. A feature declares its own labels by merging into it. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type
export interface CallLabels {}

/** Who and where a call is. */
export interface CallInfo extends CallLabels {
  /** The outermost call: the same for a call and all sub-agents below it. */
  readonly rootId: string;
  readonly callId: string;
  /** The call whose tool made this one. */
  readonly parentId?: string;
  /** The names of the agents, from the outermost to this one. */
  readonly agent: readonly string[];
  /** What the caller gave with the call. */
  readonly metadata: Readonly<Record<string, string>>;
  /** What the call says is what the call above it says: its text is a part of the root's answer. */
  readonly speaks?: true;
}
