import type { Message, ToolResultBlock, UserMessage } from '../values/message.js';
import { textBlock } from '../values/message.js';
import type { JsonSchema } from '../values/schema.js';

interface SystemParts {
  /** What the agent is told, the same in every call: it comes first, so that providers can cache it. */
  readonly instructions?: string | undefined;
  /** What has been found for this call, ready to be read. */
  readonly context?: string | undefined;
  /** The form of the answer, such as `responseFormat` writes it. */
  readonly format?: string | undefined;
}

/** The system prompt: the instructions, a section `[Retrieved Context]` and one `[Response Format]`, as far as there are any, with blank lines between them. Nothing at all is no system prompt. */
export const systemPrompt = ({
  instructions,
  context,
  format,
}: SystemParts): string | undefined => {
  const parts = [
    instructions,
    section('Retrieved Context', context),
    section('Response Format', format),
  ].filter((part) => part !== undefined && part !== '');
  return parts.length === 0 ? undefined : parts.join('\n\n');
};

/** Says that the answer is JSON, of a schema where there is one. */
export const responseFormat = (schema?: JsonSchema): string =>
  schema === undefined
    ? 'Your final answer itself must be JSON, and nothing else.'
    : `Your final answer itself must be JSON of this schema, and nothing else: ${JSON.stringify({ ...schema, $schema: undefined })}`;

export const section = (title: string, text: string | undefined): string | undefined =>
  text === undefined || text === '' ? undefined : `[${title}]\n${text}`;

/** What is shown to the model in each request of a call, and never stored. */
export interface Injected {
  /** What comes before the history, such as what is remembered of earlier conversations. */
  readonly recalled: readonly Message[];
  /** What comes right before what was asked, such as what has been found for this call, so that all before it can be cached. */
  readonly context: readonly Message[];
}

export const nothingInjected: Injected = { recalled: [], context: [] };

/** The messages of a request: what is recalled, the history, the context, what was asked and all behind it. `inputOf` tells what was asked. */
export const assembleMessages = (
  messages: readonly Message[],
  { recalled, context }: Injected,
  inputOf: () => (message: Message) => boolean,
): readonly Message[] => {
  if (recalled.length + context.length === 0) return messages;
  const at = messages.findIndex(inputOf());
  const input = at === -1 ? messages.length : at;
  return [...recalled, ...messages.slice(0, input), ...context, ...messages.slice(input)];
};

/** Notes as a message that is not the user's, each under its title; none where there are none. */
export const notesMessage = (
  id: string,
  notes: Readonly<Record<string, string>>,
): readonly UserMessage[] => {
  const sections = Object.entries(notes).map(([title, text]) => section(title, text) ?? '');
  return sections.length === 0
    ? []
    : [{ id, role: 'user', content: [textBlock(sections.join('\n\n'))] }];
};

export const textFound = (
  found: Readonly<Record<string, { readonly text: string; readonly placement: string }>>,
  place?: 'system' | 'beforeInput',
): string =>
  Object.values(found)
    .filter(({ text, placement }) => text !== '' && (place ?? placement) === placement)
    .map(({ text }) => text)
    .join('\n\n');

/** Context as a message that is not the user's: its section says what it is; none where there is none. */
export const contextMessages = (id: string, context: string): readonly UserMessage[] =>
  notesMessage(id, context === '' ? {} : { 'Retrieved Context': context });

/** Tells which messages of a request are the task: those that the call was asked with, what was said to it since, and what was found for it, by their ids. A call that only brings results goes on with what was asked last before it. */
export const taskOf = (
  messages: readonly Message[],
  callId: string,
): ((message: Message) => boolean) => {
  const isFound = ({ id }: Message): boolean => id === `${callId}/context`;
  const isOwn = ({ id }: Message): boolean => id.startsWith(`${callId}/input/`);
  if (messages.some((message) => message.role !== 'tool' && isOwn(message))) {
    return (message) => isOwn(message) || isFound(message);
  }
  // What else bears the id of the call is feedback.
  const asked = messages.findLast(
    ({ role, id }) => role === 'user' && !id.startsWith(`${callId}/`),
  );
  return (message) => message === asked || isFound(message);
};

type Messages = readonly Message[];

/** Lists that grew from another one, as a model is to read them: a long call shows its messages again with each request. */
const known = new WeakMap<Messages, Messages>();

/** Messages as a model is to read them: with what it is told beside a result, and without what is meant for the user interface. */
export const toModel = (messages: Messages): Messages =>
  known.get(messages) ?? messages.map(messageToModel);

/** Records that a list extends another one, so that only the added messages are converted. Returns the list. */
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
