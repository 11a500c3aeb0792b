import { type AssistantMessage, type Finish, type Suspension, textBlock } from './message.js';
import type { Usage, UsageByPhase } from './usage.js';

/** Why a call ended without an error. Features declare their own reasons by declaration merging, so the union is open. */
export interface EndReasons {
  readonly answer: true;
  readonly toolFinal: true;
  readonly maxIterations: true;
  readonly interrupted: true;
  readonly suspended: true;
  readonly stopped: true;
  readonly truncated: true;
  readonly refused: true;
}

export type EndReason = keyof EndReasons;

/** A tool call with its result. */
export interface ToolRun<
  Name extends string = string,
  Given = Readonly<Record<string, unknown>>,
  IsError extends boolean = boolean,
> {
  readonly toolCallId: string;
  readonly name: Name;
  /** The arguments, before a schema transforms them. Valid unless `isError`. */
  readonly input: Given;
  /** The text of the result, as the model saw it. */
  readonly output: string;
  readonly isError: IsError;
  /** The duration, in milliseconds. */
  readonly ms: number;
  /** The name of the agent that called it, in the reply of a team, such as `handoff`, or of a flow. */
  readonly agent?: string;
}

/** The call of any tool, with any arguments. */
export type AnyRun = ToolRun<string, unknown>;

/** Only the arguments of a successful call are known to be valid. */
export type TypedRun<Run extends AnyRun> =
  Run extends ToolRun<infer Name, infer Given>
    ? string extends Name
      ? ToolRun
      : ToolRun<Name, Given, false> | ToolRun<Name, ToolRun['input'], true>
    : never;

/** The result of a call: the last message of the assistant, why the call ended, and what it cost. */
export interface Reply<Output = unknown, Run extends AnyRun = AnyRun> extends AssistantMessage {
  /** The text of the answer. */
  readonly text: string;
  /** Why the call ended. Every end that is not an error has a value here. */
  readonly reason: EndReason;
  /** Why the provider ended its last message. */
  readonly finish: Finish;
  /** Model requests of the loop, without the closing one. */
  readonly iterations: number;
  /** The validated answer, if the call has an `output` schema and ended with an answer. */
  readonly output?: Output;
  /** Typed by the tools of the agent. Tools that layers, or the call's own `tools`, add are not in the type. Those of a team are those of all its members. */
  readonly toolCalls: readonly TypedRun<Run>[];
  /** Tool calls that wait for their results, if the reason is `suspended`. */
  readonly suspensions?: readonly Suspension[];
  /** The sum over all requests of the call and of its sub-agents at any depth, failed requests included. */
  readonly usage: Usage;
  /** The usage by phase: `reasoning`, `closing`, others such as `reflect`, and `acting` or `steps` for sub-agents. */
  readonly usageByPhase: UsageByPhase;
  /** When the call began, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** The duration from subscription to the end, in milliseconds. */
  readonly elapsedMs: number;
}

/** Labels of a call beside its ids. A feature declares its own by declaration merging. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type
export interface CallLabels {}

export interface CallInfo extends CallLabels {
  /** The id of the outermost call, shared by all sub-agents below it. */
  readonly rootId: string;
  readonly callId: string;
  /** The id of the call whose tool made this one. */
  readonly parentId?: string;
  /** The names of the agents, from the outermost to this one. */
  readonly agent: readonly string[];
  /** The `metadata` option of the call. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly parent?: CallInfo;
  /** The step of the parent that makes this call. */
  readonly parentStep?: string;
  /** This call speaks for its parent: its text is part of the root's answer. */
  readonly speaks?: true;
}

/** A reply whose `text` was edited, and not its content: the content follows the text. */
export const withOwnText = (edited: Reply, before: Reply | undefined): Reply => {
  const { content, text } = edited;
  if (before === undefined || text === before.text || content !== before.content) return edited;
  return {
    ...edited,
    content: [...content.filter(({ type }) => type !== 'text'), textBlock(text)],
  };
};
