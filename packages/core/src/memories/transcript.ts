import {
  type AssistantBlock,
  type ContentBlock,
  type Message,
  textBlock,
  textOf,
  type ToolMessage,
  type ToolUseBlock,
} from '../values/message.js';
import { cutObservation } from '../values/tool-output.js';
import { usesIn } from './suspend.js';

/** Characters of one text, of one input or of one result: what is longer is cut, with a marker. */
const most = 4_000;

/**
 * Writes messages down, an entry each, for a model to read about them; results stand with the message that asked for them. Headings stand at the
 * beginning of a line and nothing else does, so that no text can pass for another's. What was thought is left out.
 */
export const transcriptOf = (messages: readonly Message[]): readonly string[] => {
  const uses = usesIn(messages);
  return messages.flatMap((message, index): readonly string[] => {
    const next = messages[index + 1];
    switch (message.role) {
      case 'user':
        return [entry(who('user', message.name), written(message.content))];
      case 'assistant': {
        const blocks = message.content.map((block) => said(block, message.name));
        return [[...blocks, ...(next?.role === 'tool' ? given(next, uses) : [])].join('')];
      }
      case 'tool':
        return messages[index - 1]?.role === 'assistant' ? [] : [given(message, uses).join('')];
    }
  });
};

const given = (
  { content: results }: ToolMessage,
  uses: ReadonlyMap<string, ToolUseBlock>,
): readonly string[] =>
  results.map(({ toolUseId, content, isError }) => {
    const name = uses.get(toolUseId)?.name ?? 'a tool';
    return entry(`${isError ? 'error' : 'result'} of ${inOneLine(name)}`, written(content));
  });

/** A heading, with a text that stands in from the margin. */
export const entry = (heading: string, text: string): string =>
  `${heading}:\n${text
    .split(lineBreak)
    .map((line) => `  ${line}`)
    .join('\n')}\n`;

const lineBreak = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/u;

const inOneLine = (name: string): string => name.split(lineBreak).join(' ');

const who = (role: string, name: string | undefined): string =>
  name === undefined || name === '' ? role : `${role} (${inOneLine(name)})`;

const said = (block: AssistantBlock, name: string | undefined): string => {
  switch (block.type) {
    case 'thinking':
      return '';
    case 'tool_use': {
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
 * Finds where turns begin: at each message of a user's that is not said in the middle of one. In the middle is what the same call was asked with
 * behind another message, and what it was told while its tools ran. Of messages with ids of another kind, it is whatever follows a
 * user or a tool.
 */
export const turnStarts = (messages: readonly Message[]): readonly number[] =>
  messages.flatMap((message, index) =>
    message.role === 'user' && !isSaidWithin(messages[index - 1], message) ? [index] : [],
  );

/** Finds where the last turns begin. What waits for its result is never left behind. */
export const lastTurnsFrom = (messages: readonly Message[], turns: number): number => {
  const starts = turnStarts(messages);
  const from = starts.length > turns ? starts.at(-turns) : undefined;
  return from === undefined ? 0 : beforeWaiting(messages, starts, from);
};

/** Moves a cut to the first place before what waits for its result. */
export const beforeWaiting = (
  messages: readonly Message[],
  places: readonly number[],
  cut: number,
): number => {
  const waiting = messages.findIndex(isWaiting);
  return waiting === -1 || waiting >= cut
    ? cut
    : (places.findLast((place) => place <= waiting) ?? 0);
};

export const isWaiting = (message: Message): boolean =>
  message.role === 'tool' && message.content.some(({ suspended }) => suspended !== undefined);

const isSaidWithin = (before: Message | undefined, { id }: Message): boolean => {
  if (before === undefined || before.role === 'assistant') return false;
  const place = id.lastIndexOf('/input/');
  return place === -1 || before.id.startsWith(id.slice(0, place + 1));
};
