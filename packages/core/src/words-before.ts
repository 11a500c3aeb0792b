import type { CallInfo } from './call-info.js';
import { type AssistantMessage, isContentBlock } from './message.js';
import type { Reply } from './reply.js';
import type { EndedRun } from './run.js';

const words = new WeakMap<Reply, readonly AssistantMessage[]>();

/** Remembers what a call has said before its reply. */
export const noteWords = (
  reply: Reply,
  { messages }: Pick<EndedRun, 'messages'>,
  { callId }: Pick<CallInfo, 'callId'>,
): void => {
  const said = messages.filter(
    (message): message is AssistantMessage =>
      message.role === 'assistant' &&
      message.id !== reply.id &&
      message.id.startsWith(`${callId}/`) &&
      message.content.some(isContentBlock),
  );
  if (said.length > 0) words.set(reply, said);
};

export const wordsBefore = (reply: Reply): readonly AssistantMessage[] => words.get(reply) ?? [];
