import { type Message, textBlock, type ToolResultBlock } from './message.js';

type Messages = readonly Message[];

/** Lists that grew from another one, as a model is to read them: a long call shows its messages again with each request. */
const known = new WeakMap<Messages, Messages>();

/** Messages as a model is to read them: with what it is told beside a result, and without what is meant for the user interface. */
export const toModel = (messages: Messages): Messages =>
  known.get(messages) ?? messages.map(messageToModel);

/** Notes that a list is another one with messages behind it, so that only these are made anew. It gives the list back. */
export const grown = (messages: Messages, before: Messages, added: Messages): Messages => {
  const shown = added.map(messageToModel);
  const former = before.length === 0 ? before : toModel(before);
  const isSame = former === before && shown.every((message, at) => message === added[at]);
  known.set(messages, isSame ? messages : Object.freeze([...former, ...shown]));
  return messages;
};

export const withoutLast = (messages: Messages): Messages => {
  const kept = messages.slice(0, -1);
  const shown = known.get(messages);
  if (shown !== undefined) known.set(kept, shown === messages ? kept : shown.slice(0, -1));
  return kept;
};

const messageToModel = (message: Message): Message =>
  message.role === 'tool' && message.content.some(hasMore)
    ? { ...message, content: message.content.map(resultToModel) }
    : message;

const hasMore = ({ details, note }: ToolResultBlock): boolean =>
  details !== undefined || note !== undefined;

const resultToModel = ({ details: _details, note, ...block }: ToolResultBlock): ToolResultBlock =>
  note === undefined ? block : { ...block, content: [textBlock(`${note}\n`), ...block.content] };
