import {
  type AssistantBlock,
  type AssistantMessage,
  type ContentBlock,
  type Message,
  textBlock,
  textOf,
  type ToolCallBlock,
  toolCallsOf,
  type ToolMessage,
  type UserMessage,
} from 'millrace';
import { isTooDeep, toExactJson, untrustedText } from 'millrace/values';
import type { Dialect, DialectWriter } from './dialects.js';
import { labelWords, type LabelWords, fenceAt, jsonAt, labelAt, tagAt } from './scanner.js';

type Needs = Pick<Dialect, 'write' | 'maxUses' | 'labels' | 'words'>;

interface MessageContext {
  readonly names: ReadonlyMap<string, string>;
  readonly isOfTurn: boolean;
  readonly followsResults: boolean;
  readonly words: LabelWords;
  readonly write: DialectWriter;
}

export const historyIn = (messages: readonly Message[], dialect: Needs): readonly Message[] => {
  const { write, labels, maxUses } = dialect;
  const words = labelWords(labels, dialect.words);
  const turn = beginOfTurn(messages);
  const names = new Map<string, string>();
  const history: Message[] = [];
  let followsResults = false;
  messages.forEach((message, index) => {
    if (message.role === 'assistant') {
      toolCallsOf(message).forEach(({ id, name }) => names.set(id, name));
    }
    const isOfTurn = index >= turn;
    for (const step of stepsOf(message, messages[index + 1], messages[index - 1], maxUses)) {
      const text = textMessage(step, { names, isOfTurn, followsResults, words, write });
      followsResults = step.role === 'tool';
      if (text.content.length === 0) continue;
      const last = history.at(-1);
      const both = last === undefined ? undefined : merged(last, text);
      if (both !== undefined) history.pop();
      history.push(both ?? text);
    }
  });
  return history;
};

/** If a reply may have only one action, writes parallel tool calls as successive steps, each with its results. */
const stepsOf = (
  message: Message,
  next: Message | undefined,
  before: Message | undefined,
  maxUses: number,
): readonly Message[] => {
  if (message.role === 'tool') return isBatch(before, message, maxUses) ? [] : [message];
  if (message.role !== 'assistant' || !isBatch(message, next, maxUses)) return [message];
  return toolCallsOf(message).flatMap((use, index): readonly Message[] => [
    {
      ...message,
      content: message.content.filter((block) =>
        block.type === 'tool_call' ? block === use : index === 0,
      ),
    },
    { ...next, content: next.content.filter(({ toolCallId }) => toolCallId === use.id) },
  ]);
};

const isBatch = (
  message: Message | undefined,
  next: Message | undefined,
  maxUses: number,
): next is ToolMessage =>
  message?.role === 'assistant' &&
  next?.role === 'tool' &&
  toolCallsOf(message).filter(({ refusal }) => refusal === undefined).length > maxUses;

/** The last turn starts with the first user message after an answer, not with steered messages or feedback. */
const beginOfTurn = (messages: readonly Message[]): number =>
  messages.findLastIndex(
    ({ id, role }, index) => role === 'user' && isAnswerBefore(id, messages[index - 1]),
  );

const isAnswerBefore = (id: string, message: Message | undefined): boolean =>
  message === undefined ||
  (message.role === 'assistant' &&
    textOf(message) !== '' &&
    toolCallsOf(message).length === 0 &&
    !id.startsWith(`${message.id}/`));

const textMessage = (message: Message, context: MessageContext): UserMessage | AssistantMessage => {
  switch (message.role) {
    case 'user':
      return context.followsResults
        ? { ...message, content: together([textBlock(speakerOf(message))], message.content, ' ') }
        : message;
    case 'assistant':
      return { ...message, content: assistantContent(message, context) };
    case 'tool':
      return { id: message.id, role: 'user', content: resultContent(message, context) };
  }
};

const speakerOf = ({ id }: UserMessage): string => (id.endsWith('/notes') ? 'Notes:' : 'User:');

/** Maximum length of thoughts from earlier turns, which remind the model of the form; longer ones are omitted. */
const maxEarlierThought = 500;

const assistantContent = (
  message: AssistantMessage,
  { write, words, isOfTurn }: MessageContext,
): readonly AssistantBlock[] => {
  const { content } = message;
  // A refused call would show a form outside of the dialect: its result says why it was refused.
  const uses = toolCallsOf(message)
    .filter(({ refusal }) => refusal === undefined)
    .map((use) => ({ name: use.name, json: jsonOf(use) }));
  const text = textOf(message).trim();
  const thoughts = content.flatMap((block) =>
    block.type === 'thinking' && block.signature === undefined ? [block.text] : [],
  );
  const whole = thoughts.join('\n\n').trim();
  const thought = isOfTurn || whole.length <= maxEarlierThought ? quotedThought(whole, words) : '';
  const others = content.filter(
    ({ type }) => type !== 'text' && type !== 'tool_call' && type !== 'thinking',
  );
  const signed = content.filter(
    (block) => block.type === 'thinking' && block.signature !== undefined,
  );
  const written = textIn(write, thought, text, uses);
  return [...signed, ...(written === '' ? [] : [textBlock(written)]), ...others];
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

const jsonOf = ({ input, invalidInput }: ToolCallBlock): string =>
  invalidInput ?? (isTooDeep(input) ? 'a value that cannot be read' : toExactJson(input));

const resultContent = (
  { content }: ToolMessage,
  { write, words, names }: MessageContext,
): readonly ContentBlock[] => {
  const all = content.map(({ toolCallId }) => names.get(toolCallId) ?? toolCallId);
  return content.reduce<readonly ContentBlock[]>((before, result, index) => {
    const name = all[index] ?? '';
    const isTwin = all.filter((it) => it === name).length > 1;
    const text = write.result({
      tool: isTwin ? `${name} ${all.slice(0, index + 1).filter((it) => it === name).length}` : name,
      text: untrustedText(textOf(result), { labels: words.map(([word]) => word) }),
      isError: result.isError,
      isOneOfMany: content.length > 1,
    });
    const others = result.content.filter(({ type }) => type !== 'text');
    return together(before, [textBlock(text), ...others]);
  }, []);
};

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

const together = <AnyBlock extends AssistantBlock | ContentBlock>(
  some: readonly AnyBlock[],
  more: readonly AnyBlock[],
  between = '\n\n',
): readonly AnyBlock[] => {
  const last = some.at(-1);
  const [first, ...rest] = more;
  return last?.type === 'text' && first?.type === 'text'
    ? [...some.slice(0, -1), { ...first, text: `${last.text}${between}${first.text}` }, ...rest]
    : [...some, ...more];
};

/** Quotes lines of a thought that start with a mark, and puts tags within a line in backticks. */
const quotedThought = (thought: string, words: LabelWords): string =>
  byLine(thought, (line) => isMark(line, words)).replaceAll(
    /(?<!`)(?:<tool_call>|<function=[^<>\n]{1,100}>|<\|python_tag\|>|\[TOOL_CALLS\])/g,
    (tag) => `\`${tag}\``,
  );

const byLine = (text: string, isQuoted: (line: string) => boolean): string =>
  text
    .split('\n')
    .map((line) => (isQuoted(line.trimStart()) ? `> ${line}` : line))
    .join('\n');

const isLabel = (line: string, words: LabelWords): boolean =>
  /^[*_#\s]{0,8}user[*_\s]{0,8}:/i.test(line) || labelAt(line, words, true) !== undefined;

const isMark = (line: string, words: LabelWords): boolean =>
  isLabel(line, words) ||
  tagAt(line, true) !== undefined ||
  fenceAt(line, true) !== undefined ||
  jsonAt(line, true) !== undefined;
