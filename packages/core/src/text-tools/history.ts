import {
  type AssistantBlock,
  type AssistantMessage,
  type ContentBlock,
  type Message,
  textBlock,
  textOf,
  type ToolMessage,
  type ToolUseBlock,
  toolUsesOf,
  type UserMessage,
} from '../message.js';
import { written } from '../tool-parts.js';
import type { DialectWriter } from './dialect.js';

/** Writes what has been said as texts in the form of a dialect. Messages of the same side that follow each other become one. */
export const historyIn = (
  messages: readonly Message[],
  write: DialectWriter,
): readonly Message[] => {
  const turn = beginOfTurn(messages);
  const names = new Map<string, string>();
  const history: Message[] = [];
  messages.forEach((message, index) => {
    if (message.role === 'assistant') {
      toolUsesOf(message).forEach(({ id, name }) => names.set(id, name));
    }
    const text = textMessage(message, write, names, index >= turn);
    if (text.content.length === 0) return;
    const last = history.at(-1);
    const both = last === undefined ? undefined : merged(last, text);
    if (both !== undefined) history.pop();
    history.push(both ?? text);
  });
  return history;
};

/** Where the last turn begins: at what the user said first behind an answer. News within a turn, and what the model is told of its replies, begin none. */
const beginOfTurn = (messages: readonly Message[]): number =>
  messages.findLastIndex(({ role }, index) => role === 'user' && isAnswer(messages[index - 1]));

const isAnswer = (message: Message | undefined): boolean =>
  message === undefined ||
  (message.role === 'assistant' && textOf(message) !== '' && toolUsesOf(message).length === 0);

const textMessage = (
  message: Message,
  write: DialectWriter,
  names: ReadonlyMap<string, string>,
  isOfTurn: boolean,
): UserMessage | AssistantMessage => {
  switch (message.role) {
    case 'user':
      return message;
    case 'assistant':
      return { ...message, content: assistantContent(message, write, isOfTurn) };
    case 'tool':
      return { id: message.id, role: 'user', content: resultContent(message, write, names) };
  }
};

const assistantContent = (
  message: AssistantMessage,
  write: DialectWriter,
  isOfTurn: boolean,
): readonly AssistantBlock[] => {
  const { content } = message;
  // A use that was not run would show a form that is not the dialect's: its result says what became of it.
  const uses = toolUsesOf(message)
    .filter(({ refusal }) => refusal === undefined)
    .map((use) => ({ name: use.name, json: jsonOf(use) }));
  const text = textOf(message).trim();
  const thoughts = content.flatMap((block) =>
    block.type === 'thinking' && block.signature === undefined ? [block.text] : [],
  );
  const thought = isOfTurn ? thoughts.join('\n\n').trim() : '';
  const others = content.filter(
    ({ type }) => type !== 'text' && type !== 'tool_use' && type !== 'thinking',
  );
  const signed = content.filter(
    (block) => block.type === 'thinking' && block.signature !== undefined,
  );
  const words = textIn(write, thought, text, uses);
  return [...signed, ...(words === '' ? [] : [textBlock(words)]), ...others];
};

const textIn = (
  write: DialectWriter,
  thought: string,
  text: string,
  uses: Parameters<DialectWriter['uses']>[1],
): string => {
  if (uses.length > 0) {
    return write.uses([thought, text].filter((it) => it !== '').join('\n\n'), uses);
  }
  if (text !== '') return write.answer(thought, text);
  return thought === '' ? '' : write.thought(thought);
};

const jsonOf = ({ input, invalidInput }: ToolUseBlock): string => invalidInput ?? written(input);

const resultContent = (
  { content }: ToolMessage,
  write: DialectWriter,
  names: ReadonlyMap<string, string>,
): readonly ContentBlock[] => {
  const texts = content.map((result) =>
    write.result({
      tool: names.get(result.toolUseId) ?? result.toolUseId,
      text: textOf(result),
      isError: result.isError,
      isOneOfMany: content.length > 1,
    }),
  );
  const others = content.flatMap((result) => result.content.filter(({ type }) => type !== 'text'));
  return [textBlock(texts.join('\n\n')), ...others];
};

/** Two messages of one side as one. */
const merged = (one: Message, other: Message): Message | undefined => {
  if (one.role === 'user' && other.role === 'user') {
    const { name: _name, ...rest } = one;
    const isSame = one.name === other.name;
    const content = isSame
      ? together(one.content, other.content)
      : together(named(one), named(other));
    return isSame ? { ...one, content } : { ...rest, content };
  }
  if (one.role === 'assistant' && other.role === 'assistant') {
    return { ...one, content: together(one.content, other.content) };
  }
  return undefined;
};

const named = ({ name, content }: UserMessage): readonly ContentBlock[] => {
  const [first, ...rest] = content;
  if (name === undefined || first?.type !== 'text') return content;
  return [textBlock(`${name}: ${first.text}`), ...rest];
};

/** Blocks behind others. Two texts that meet become one. */
const together = <AnyBlock extends AssistantBlock | ContentBlock>(
  some: readonly AnyBlock[],
  more: readonly AnyBlock[],
): readonly AnyBlock[] => {
  const last = some.at(-1);
  const [first, ...rest] = more;
  return last?.type === 'text' && first?.type === 'text'
    ? [...some.slice(0, -1), { ...first, text: `${last.text}\n\n${first.text}` }, ...rest]
    : [...some, ...more];
};
