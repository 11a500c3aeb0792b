import type { CallInfo } from '../values/reply.js';
import { type AssistantMessage, frozen, toolCallsOf } from '../values/message.js';
import { MillraceError } from '../values/errors.js';

/** Gives a cached message of another call an id of this call: memory would take it for a known message. */
export const withOwnId = <Answer extends { readonly message: AssistantMessage }>(
  response: Answer,
  { callId }: CallInfo,
  position: string,
): Answer => {
  const { message } = response;
  return message.id.startsWith(`${callId}/`)
    ? response
    : { ...response, message: { ...message, id: `${callId}/${position}` } };
};

/** An edited message keeps its id; the ids of its tool calls must stay unique in the conversation. */
export const editedMessage = (
  message: AssistantMessage,
  edited: AssistantMessage,
  known: ReadonlySet<string>,
): AssistantMessage => {
  const { id, name } = message;
  const before = idsOf(message);
  const ids = idsOf(edited);
  const repeats = ids.some((it) => known.has(it) && !before.includes(it));
  if (repeats || new Set(ids).size < ids.length) {
    throw new MillraceError(
      'interceptor',
      `An interceptor gave a tool call of the message '${id}' an id that is already used. Give each a unique id.`,
    );
  }
  return frozen({ ...edited, id, role: 'assistant', ...(name === undefined ? {} : { name }) });
};

const idsOf = (message: AssistantMessage): readonly string[] =>
  toolCallsOf(message).map(({ id }) => id);

export const messageIdAt = (stepId: string, attempt: number): string =>
  attempt === 1 ? stepId : `${stepId}~${attempt}`;
