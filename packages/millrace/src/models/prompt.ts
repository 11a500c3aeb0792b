import type { Message, ToolMessage, ToolResultBlock, UserMessage } from '../values/message.js';
import { frozen, isBesideQuestion, textBlock } from '../values/message.js';

interface SystemParts {
  /** The instructions of the agent, the same in every call. They come first, for the provider's cache. */
  readonly instructions?: string | undefined;
  /** The text of found passages. */
  readonly context?: string | undefined;
}

/** Joins instructions and `[Retrieved Context]` with blank lines; `undefined` if both are absent. */
export const systemPrompt = ({ instructions, context }: SystemParts): string | undefined => {
  const parts = [instructions, section('Retrieved Context', context)].filter(
    (part) => part !== undefined && part !== '',
  );
  return parts.length === 0 ? undefined : parts.join('\n\n');
};

export const section = (title: string, text: string | undefined): string | undefined =>
  text === undefined || text === '' ? undefined : `[${title}]\n${text}`;

export interface Injected {
  /** Messages before the history, such as facts from earlier conversations. */
  readonly recalled: readonly Message[];
  /** Messages right before the input, such as found passages. The prefix before them can be cached. */
  readonly context: readonly Message[];
}

export const nothingInjected: Injected = { recalled: [], context: [] };

/** The messages of a request: recalled messages, history, context, then the input and all later messages. */
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

/** Notes as one message that is marked as not from the user, each under its title; empty if there are no notes. */
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

/** Context as one message that is marked as not from the user; empty if there is no context. */
export const contextMessages = (id: string, context: string): readonly UserMessage[] =>
  notesMessage(id, context === '' ? {} : { 'Retrieved Context': context });

/** The messages of the task by id: input, later messages and context. If a call only brings results: the last input before. */
export const taskOf = (
  messages: readonly Message[],
  callId: string,
): ((message: Message) => boolean) => {
  const isFound = ({ id }: Message): boolean => id === `${callId}/context`;
  const isOwn = ({ id }: Message): boolean => id.startsWith(`${callId}/input/`);
  if (messages.some((message) => message.role !== 'tool' && isOwn(message))) {
    return (message) => isOwn(message) || isFound(message);
  }
  // Other messages with the id of the call are feedback.
  const asked = messages.findLast(
    (it) => it.role === 'user' && !it.id.startsWith(`${callId}/`) && !isBesideQuestion(it),
  );
  return (message) => message === asked || isFound(message);
};

/** Tool messages as models get them, kept so that vendors can cache what they serialize. */
const converted = new WeakMap<ToolMessage, ToolMessage>();

/** Converts messages for a model: includes the notes of results, and drops data for the user interface. */
export const toModel = (messages: readonly Message[]): readonly Message[] =>
  messages.map((message) =>
    message.role === 'tool' ? (converted.get(message) ?? convert(message)) : message,
  );

const convert = (message: ToolMessage): ToolMessage => {
  const result = message.content.some(({ note, details }) => (note ?? details) !== undefined)
    ? { ...message, content: Object.freeze(message.content.map(resultToModel)) }
    : message;
  converted.set(message, Object.freeze(result));
  return result;
};

const resultToModel = ({ details: _details, note, ...block }: ToolResultBlock): ToolResultBlock =>
  frozen(
    note === undefined ? block : { ...block, content: [textBlock(`${note}\n`), ...block.content] },
  );
