import { type Message, type MessageTree, MillraceError, textOf } from 'millrace';
import { isMessage, parsedJson } from 'millrace/values';

/** A message that contains another one as JSON, so that most of a tree need not be parsed. */
export const packed = (id: string, json: string): Message => ({
  id,
  role: 'user',
  content: [{ type: 'text', text: json }],
});

export const jsonOf: (message: Message) => string = textOf;

export const pack = (message: Message): Message => packed(message.id, JSON.stringify(message));

export const unpack = (message: Message): Message => parseMessage(jsonOf(message));

/** A tree with other messages of the same ids. */
export const withMessages = (
  { entries, head }: MessageTree,
  change: (message: Message) => Message,
): MessageTree => ({
  entries: entries.map(({ message, after }) => ({ message: change(message), after })),
  head,
});

export const parseMessage = (text: string): Message => {
  const value = parsedJson(text);
  if (isMessage(value)) return value;
  throw new MillraceError('invalidState', 'A stored message is not valid.');
};
