import type { InputMessage } from '../input.js';
import { textBlock } from '../message.js';
import type { ToolRun } from '../reply.js';

/** A conversation that moves to another agent. */
export interface Handover {
  readonly from: string;
  readonly to: string;
  /** Why, in the words of who hands over. */
  readonly reason?: string;
  /** The tools that it has run, oldest first. */
  readonly toolUses: readonly ToolRun[];
}

/**
 * Decides what the next agent is shown of a conversation: what users and agents have said, the last message of a user and what came behind it among it. It may leave
 * out, change and add; the conversation goes on from what is left.
 */
export type HandoffFilter = (
  messages: readonly InputMessage[],
  handover: Handover,
) => readonly InputMessage[];

/** What was said, and nothing of the tools that others have used. */
export const carryWords: HandoffFilter = (messages) => messages;

/** What was said, and in words what the tools of who hands over have given. */
export const carryAll: HandoffFilter = (messages, { from, toolUses }) =>
  toolUses.length === 0
    ? messages
    : [...messages.slice(0, -1), toolsOf(from, toolUses), ...messages.slice(-1)];

/** What a user has said last, and what came behind it. */
export const carryLast: HandoffFilter = (messages) => messages.slice(lastOfUser(messages));

export const lastOfUser = (messages: readonly InputMessage[]): number =>
  Math.max(
    0,
    messages.findLastIndex((it) => it.role === 'user'),
  );

const toolsOf = (name: string, toolUses: readonly ToolRun[]): InputMessage => ({
  role: 'assistant',
  name,
  content: [
    textBlock(
      toolUses
        .map((it) => {
          const result = it.isError ? `failed: ${it.output}` : `gave: ${it.output}`;
          return `I have used ${it.name}(${JSON.stringify(it.input)}), which ${result}`;
        })
        .join('\n'),
    ),
  ],
});
