import {
  type AssistantBlock,
  type ContentBlock,
  type Message,
  textBlock,
  textOf,
  type ToolMessage,
  type ToolCallBlock,
} from '../values/message.js';
import { cutObservation } from '../values/tool-output.js';
import { usesIn } from './suspend.js';

/** Maximum number of characters of text, an input or a result; longer ones are truncated, with a marker. */
const most = 4_000;

/**
 * Converts messages to text, one entry each, for a model to read; results are part of the entry of their tool call. Only headings
 * start at the beginning of a line, so no text can impersonate another author. Thinking is omitted.
 */
export const transcriptOf = (messages: readonly Message[]): readonly string[] => {
  const uses = usesIn(messages);
  return messages.flatMap((message, index): readonly string[] => {
    const next = messages[index + 1];
    switch (message.role) {
      case 'user':
        return [entry(who('user', message.name), written(message.content))];
      case 'assistant': {
        const blocks = message.content.map((block) => textOfBlock(block, message.name));
        return [[...blocks, ...(next?.role === 'tool' ? given(next, uses) : [])].join('')];
      }
      case 'tool':
        return messages[index - 1]?.role === 'assistant' ? [] : [given(message, uses).join('')];
    }
  });
};

const given = (
  { content: results }: ToolMessage,
  uses: ReadonlyMap<string, ToolCallBlock>,
): readonly string[] =>
  results.map(({ toolCallId, content, isError }) => {
    const name = uses.get(toolCallId)?.name ?? 'a tool';
    return entry(`${isError ? 'error' : 'result'} of ${inOneLine(name)}`, written(content));
  });

export const entry = (heading: string, text: string): string =>
  `${heading}:\n${text
    .split(lineBreak)
    .map((line) => `  ${line}`)
    .join('\n')}\n`;

const lineBreak = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/u;

const inOneLine = (name: string): string => name.split(lineBreak).join(' ');

const who = (role: string, name: string | undefined): string =>
  name === undefined || name === '' ? role : `${role} (${inOneLine(name)})`;

const textOfBlock = (block: AssistantBlock, name: string | undefined): string => {
  switch (block.type) {
    case 'thinking':
    case 'vendor':
      return '';
    case 'tool_call': {
      const input = cut([textBlock(JSON.stringify(block.input))]);
      return entry(`${who('assistant', name)} uses ${inOneLine(block.name)}`, input);
    }
    default:
      return entry(who('assistant', name), written([block]));
  }
};

const written = (content: readonly ContentBlock[]): string =>
  cut(content.map((block) => (block.type === 'text' ? block : textBlock(`[${block.type}]`))));

const cut = (content: readonly ContentBlock[]): string =>
  textOf({ content: cutObservation(content, most) });

/**
 * The indexes at which turns start: user messages, except further input and steering of the same call. Among messages with
 * foreign ids: user messages that follow neither a user nor a tool message.
 */
export const turnStarts = (messages: readonly Message[]): readonly number[] =>
  messages.flatMap((message, index) =>
    message.role === 'user' && !isWithinTurn(messages[index - 1], message) ? [index] : [],
  );

/** The index at which the last turns start; it includes tool calls that wait for results. */
export const lastTurnsFrom = (messages: readonly Message[], turns: number): number => {
  const starts = turnStarts(messages);
  const from = starts.length > turns ? starts.at(-turns) : undefined;
  return from === undefined ? 0 : beforeWaiting(messages, starts, from);
};

/** Moves an index before the first tool call that waits for its result. */
export const beforeWaiting = (
  messages: readonly Message[],
  places: readonly number[],
  cutAt: number,
): number => {
  const waiting = messages.findIndex(isWaiting);
  return waiting === -1 || waiting >= cutAt
    ? cutAt
    : (places.findLast((place) => place <= waiting) ?? 0);
};

export const isWaiting = (message: Message): boolean =>
  message.role === 'tool' && message.content.some(({ suspended }) => suspended !== undefined);

const isWithinTurn = (before: Message | undefined, { id }: Message): boolean => {
  if (before === undefined || before.role === 'assistant') return false;
  const place = id.lastIndexOf('/input/');
  return place === -1 || before.id.startsWith(id.slice(0, place + 1));
};
