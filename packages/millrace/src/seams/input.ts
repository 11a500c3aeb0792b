import type { CallInfo } from '../values/reply.js';
import { messageOf, MillraceError } from '../values/errors.js';
import {
  type ContentBlock,
  freezeMessage,
  isBesideQuestion,
  isContentBlock,
  type Message,
  type ToolResultBlock,
  type UserMessage,
} from '../values/message.js';
import { isRecord } from '../values/json.js';
import {
  type Fault,
  faultIn,
  type GivenMessage,
  isEmptyMessage,
  isInputMessage,
  withBlocks,
} from './given-message.js';
import { cell } from '../step.js';
import { unpaired } from '../values/pairing.js';

export type { GivenMessage, InputMessage } from './given-message.js';

/** Input of a call: a string, content blocks, a message, or a list of messages and strings. */
export type Input =
  string | readonly ContentBlock[] | GivenMessage | readonly (GivenMessage | string)[];

/**
 * The index at which the question of a list of messages starts: the last user message, with those right before it, which have no
 * answer. All that follows it belongs to it. Without a user message, all is the question.
 */
export const questionStart = (messages: readonly unknown[]): number => {
  const last = messages.findLastIndex(isOfUser);
  const known = messages.slice(0, last + 1).findLastIndex((it) => isRecord(it) && isEarlier(it));
  const answered = messages.slice(0, Math.max(0, last)).findLastIndex((it) => !isOfUser(it));
  return last === -1 ? 0 : Math.min(last, Math.max(known, answered) + 1);
};

const isOfUser = (part: unknown): boolean =>
  typeof part === 'string' ||
  (isRecord(part) && part['role'] === 'user' && !isBesideQuestion(part));

/** Whether a message was before the question of its call. In a journal, the names of others are all that is left of their role. */
export const isEarlier = ({ id }: { readonly id?: unknown }): boolean =>
  typeof id === 'string' && id.startsWith('history/');

/** The earlier messages that a caller gave beside the input. */
export const givenHistory = cell('call', (): GivenHistory => ({}));

interface GivenHistory {
  messages?: readonly Message[];
  isGuarded?: boolean | undefined;
}

/** Whether a call answers with the voices of several agents: their earlier messages are its own. */
export const voices = cell('call', (): Voices => ({}));

interface Voices {
  hasMembers?: boolean;
}

/** Reads the input of a call: its question, with results for earlier tool calls, and the messages before it, which are history. */
export const readAsked = (
  given: unknown,
  call: Pick<CallInfo, 'callId' | 'agent' | 'parentId'> & Voices & { readonly isResumed: boolean },
): { readonly input: readonly Message[]; readonly history: readonly Message[] } => {
  const isFromTeam = call.parentId !== undefined;
  const input = isFromTeam || call.isResumed ? given : withoutIds(given);
  if (!Array.isArray(input)) return { input: readInput(input, call), history: [] };
  const parts = readableEntries('input', input);
  // Results that only the question follows are for tools that wait.
  const first = parts.findIndex((part) => resultsIn(part) === undefined);
  const results = Math.max(0, first);
  const start = results + questionStart(parts.slice(results));
  if (start === results) return { input: readInput(parts, call), history: [] };
  return {
    input: readInput(parts.slice(start), call),
    history: readHistory(parts.slice(0, start), call, 'input'),
  };
};

/** Converts an input to messages, or throws `invalidRequest`. Results for earlier tool calls come first. */
export const readInput = (
  input: unknown,
  { callId, agent }: Pick<CallInfo, 'callId' | 'agent'>,
  placeOf: (index: number) => string = String,
): readonly Message[] => {
  const parts = Array.isArray(input) ? input : [input];
  if (parts.length === 0 || input === '') throw unreadable('input', 'it is empty');
  const areBlocks = parts.every(isContentBlock);
  const messages = areBlocks ? [{ role: 'user', content: parts }] : readableParts(parts);
  const own = Array.isArray(input) ? agent.at(-1) : undefined;
  const asked = messages.findIndex(isOfUser);
  const read = messages.map((part, index) => {
    const message = toMessage('input', part, own);
    // Tool calls and words of others after the question are no part of the task: the oldest can be left out.
    const isTask = isOfUser(part) || asked === -1 || index < asked;
    return {
      ...message,
      id: `${isTask ? `${callId}/input` : `given/${callId}`}/${placeOf(index)}`,
    };
  });
  const [first, ...others] = read;
  const fault = unpaired(first?.role === 'tool' ? others : read);
  if (fault !== undefined) throw unreadable('input', `it holds ${fault}`);
  return Object.freeze(read.map(freezeMessage));
};

export const readLateInput = (
  input: unknown,
  call: Pick<CallInfo, 'callId' | 'agent'>,
  place: string,
): readonly UserMessage[] =>
  readInput(withoutIds(input), call, (index) => `${place}/${index}`).map(fromUser);

/** Only teams and journals know what is beside a question: guards of an agent in a team do not check it. */
const withoutIds = (input: unknown): unknown =>
  Array.isArray(input)
    ? input.map((part: unknown) =>
        isRecord(part) && isBesideQuestion(part) ? { ...part, id: '' } : part,
      )
    : input;

const fromUser = (message: Message): UserMessage => {
  if (message.role === 'user') return message;
  throw new MillraceError(
    'invalidRequest',
    `A running call takes messages of the user, not of the role '${message.role}'. Pass a string, content blocks or user messages.`,
  );
};

/** Converts the history of a call, or throws `invalidRequest`. Tool calls of other agents are dropped. */
export const readHistory = (
  history: unknown,
  { agent, hasMembers = false }: Pick<CallInfo, 'agent'> & Voices,
  what: What = 'history',
): readonly Message[] => {
  if (!Array.isArray(history)) throw unreadable('history', 'it is not a list');
  const own = agent.at(-1);
  const parts = readableParts(what === 'input' ? history : readableEntries(what, history));
  const isOthers = (part: unknown): boolean =>
    !hasMembers && isInputMessage(part) && part.role === 'assistant' && (part.name ?? own) !== own;
  const isReadable = (part: unknown, index: number): boolean => {
    if (isRecord(part) && part['role'] === 'tool') return !isOthers(parts[index - 1]);
    return !isOthers(part) || !isInputMessage(part) || part.content.some(isContentBlock);
  };
  const read = parts.filter(isReadable).map((message, index) => ({
    ...(hasMembers ? plainMessage(what, message) : toMessage(what, message, own)),
    // With the id of the call they would become part of its task.
    id: `history/${index}`,
  }));
  return Object.freeze(read.map(freezeMessage));
};

/** Spells out content, and joins results in a row: many programs have a message for each. One pass: lists are long. */
const readableParts = (parts: readonly unknown[]): readonly unknown[] => {
  const read: unknown[] = [];
  let row: unknown[] | undefined;
  for (const given of parts) {
    const part: unknown = withBlocks(given);
    const results = resultsIn(part);
    if (results !== undefined && row !== undefined) {
      for (const result of results) row.push(result);
      continue;
    }
    row = results && [...results];
    read.push(row === undefined ? part : { ...Object(part), content: row });
  }
  return read;
};

const resultsIn = (part: unknown): readonly unknown[] | undefined =>
  isRecord(part) && part['role'] === 'tool' && Array.isArray(part['content'])
    ? part['content']
    : undefined;

type What = 'input' | 'history';

const plainMessage = (what: What, part: unknown): Message => {
  if (isInputMessage(part)) return copy(what, part);
  throw faulty(what, '', faultIn(part));
};

const faulty = (what: What, where: string, fault: Fault | undefined): MillraceError =>
  unreadable(what, `${where}${fault?.why ?? 'it is no message'}`, fault?.hint);

/** The entries of a list without empty messages before the question, and answers. Throws `invalidRequest` for one that cannot be read, with its place. */
const readableEntries = (what: What, entries: readonly unknown[]): readonly unknown[] => {
  const last = entries.findLastIndex(isOfUser);
  const isLeftOut = (entry: unknown, index: number): boolean =>
    isEmptyMessage(entry) && (index < last || !isOfUser(entry));
  const kept = entries.filter((entry, index) => !isLeftOut(entry, index));
  if (kept.every(isContentBlock) && kept.length > 0) return kept;
  entries.forEach((entry, index) => {
    const fault = kept.length > 0 && isLeftOut(entry, index) ? undefined : faultIn(entry);
    if (fault !== undefined) throw faulty(what, `entry ${index + 1}: `, fault);
  });
  return kept;
};

const toMessage = (what: What, part: unknown, own: string | undefined): Message => {
  const message = plainMessage(what, part);
  if (message.role !== 'assistant' || (own !== undefined && (message.name ?? own) === own)) {
    return message;
  }
  const { id, name } = message;
  const content = message.content.filter(isContentBlock);
  if (content.length === 0) {
    throw unreadable(what, 'the message of another agent has no text or media');
  }
  return { id, role: 'user', content, ...(name === undefined ? {} : { name }) };
};

const copy = (what: What, { role, content, ...rest }: Message): Message => {
  const plain = what === 'input' ? plainResult : waitingResult;
  const name = 'name' in rest && typeof rest.name === 'string' ? { name: rest.name } : {};
  try {
    // Role and content of a message belong together; a spread cannot express that.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    return {
      id: '',
      role,
      content: structuredClone(role === 'tool' ? content.map(plain) : content),
      ...name,
    } as Message;
  } catch (cause) {
    throw unreadable(what, messageOf(cause));
  }
};

/** Copies the known fields of a result from outside. */
const plainResult = ({ type, toolCallId, content, isError, details, from }: ToolResultBlock) => ({
  type,
  toolCallId,
  content,
  isError,
  ...(details === undefined ? {} : { details }),
  ...(from === 'client' && { from }),
});

const waitingResult = ({ suspended, ...result }: ToolResultBlock) => ({
  ...plainResult(result),
  ...(isRecord(suspended) && {
    suspended: {
      request: suspended.request,
      from: suspended.from === 'client' ? 'client' : 'program',
    },
  }),
});

const unreadable = (what: What, why: string, hint: string = hints[what]): MillraceError =>
  new MillraceError('invalidRequest', `The ${what} cannot be read: ${why}. ${hint}`);

const hints = {
  input:
    "Pass a string, content blocks such as { type: 'text', text: '…' } or { type: 'image', source: { kind: 'base64', mediaType: 'image/png', data: '…' } }, a message such as { role: 'user', content: '…' }, or a list of messages.",
  history:
    "Pass a list of messages, such as { role: 'user', content: '…' }, each tool call followed by its result.",
} as const;
