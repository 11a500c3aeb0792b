import { estimateTokens } from './estimate-tokens.js';
import { type Block, type Message, textBlock } from './message.js';

/** Messages that were made to fit. */
export interface Fitted {
  readonly messages: readonly Message[];
  /** How many were left out. */
  readonly omitted: number;
  /** The tokens of those, as estimated. */
  readonly omittedTokens: number;
}

/**
 * Leaves out what a budget of tokens has no room for: first the oldest history before the task, then the oldest
 * tools behind it, except the newest. A tool use and its result go together, and the task always stays; it
 * says how much is missing. What fits is returned as it is.
 */
export const fitMessages = (
  messages: readonly Message[],
  budget: number,
  isTask: (message: Message) => boolean,
): Fitted => {
  const task = messages.findIndex(isTask);
  const last = messages.findLastIndex(isTask);
  if (task === -1) return { messages, omitted: 0, omittedTokens: 0 };
  const removable = [
    ...unitsOf(messages.slice(0, task), ({ role }) => role === 'user'),
    ...withoutNewest(unitsOf(messages.slice(last + 1), ({ role }) => role !== 'tool')),
  ];
  let over = tokensOfAll(messages) - budget;
  const omitted = new Set<Message>();
  let omittedTokens = 0;
  for (const unit of removable) {
    if (over <= 0) break;
    const tokens = tokensOfAll(unit);
    unit.forEach((message) => omitted.add(message));
    omittedTokens += tokens;
    over -= tokens;
  }
  if (omitted.size === 0) return { messages, omitted: 0, omittedTokens: 0 };
  const marker = `[${omitted.size} earlier messages, about ${omittedTokens} tokens, are left out here.]\n\n`;
  const first = messages[task];
  return {
    messages: messages
      .filter((message) => !omitted.has(message))
      .map((message) => (message === first ? marked(message, marker) : message)),
    omitted: omitted.size,
    omittedTokens,
  };
};

/** What stands before the newest tools: neither they nor what was said of them may go. */
const withoutNewest = (units: readonly (readonly Message[])[]): readonly (readonly Message[])[] => {
  const newest = units.findLastIndex((unit) => unit.some(({ role }) => role === 'tool'));
  return units.slice(0, Math.max(0, newest));
};

/** The tokens of messages, as estimated. */
export const tokensOfAll = (messages: readonly Message[]): number =>
  messages.reduce((sum, message) => sum + tokensOf(message), 0);

/** Cuts a list before each message that begins a unit. */
const unitsOf = (
  messages: readonly Message[],
  begins: (message: Message) => boolean,
): readonly (readonly Message[])[] => {
  const units: Message[][] = [];
  for (const message of messages) {
    const unit = units.at(-1);
    if (unit === undefined || begins(message)) units.push([message]);
    else unit.push(message);
  }
  return units;
};

const marked = (message: Message, marker: string): Message =>
  message.role === 'user'
    ? { ...message, content: [textBlock(marker), ...message.content] }
    : message;

/** What a picture, a recording or a document is taken to cost: vendors count them by sizes that are not known here. */
const mediaTokens = 1_000;

const tokensOf = ({ content }: { readonly content: readonly Block[] }): number =>
  content.reduce((sum, block) => sum + blockTokens(block), 0);

const blockTokens = (block: Block): number => {
  switch (block.type) {
    case 'text':
    case 'thinking':
      return estimateTokens(block.text);
    case 'tool_use':
      return estimateTokens(block.name) + estimateTokens(JSON.stringify(block.input));
    case 'tool_result':
      return tokensOf(block);
    default:
      return mediaTokens;
  }
};
