import { type Message, toolCallsOf } from 'millrace';

/** The ids of the tool uses that do not have exactly one result each in the message behind them, in the same order. */
export const unanswered = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap((message, index) => {
    const asked = message.role === 'assistant' ? toolCallsOf(message).map(({ id }) => id) : [];
    const next = messages[index + 1];
    const answered = next?.role === 'tool' ? next.content.map(({ toolCallId }) => toolCallId) : [];
    const isSure = asked.length === answered.length;
    return asked.filter((id, place) => !isSure || answered[place] !== id);
  });
