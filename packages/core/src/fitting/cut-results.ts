import { textBlock, type ToolMessage, type ToolResultBlock } from '../message.js';
import { costOf, weigh } from './count-request.js';
import { cutMiddle } from './cut-middle.js';
import type { TokenCounter } from './token-counter.js';

/** Tokens that every text of a result keeps. */
const leastTokens = 64;

/**
 * Cuts the longest texts of tools' results, visibly and in their middle, to one length at which the message fits into so many tokens. It
 * gives the message back as it is where nothing is longer.
 */
export const cutResults = (
  message: ToolMessage,
  budget: number,
  counter: TokenCounter,
  factor: number,
): ToolMessage => {
  const { text, media } = weigh(counter, message);
  if (costOf({ text, media }, factor) <= budget) return message;
  const counts = message.content.flatMap((result) =>
    result.content.map((block) => (block.type === 'text' ? counter.count(block.text) : 0)),
  );
  const texts = sum(counts);
  const room = Math.floor((budget - media) / factor) - (text - texts);
  const most = Math.max(leastTokens, levelOf(counts, room));
  if (counts.every((count) => count <= most)) return message;
  const count = (it: string): number => counter.count(it);
  const cut = (result: ToolResultBlock): ToolResultBlock => {
    const content = result.content.map((block) => {
      if (block.type !== 'text') return block;
      const tokens = count(block.text);
      return tokens <= most ? block : textBlock(cutMiddle(block.text, tokens, most, count));
    });
    return content.some((block, index) => block !== result.content[index])
      ? { ...result, content }
      : result;
  };
  return { ...message, content: message.content.map(cut) };
};

/** The highest level at which counts that are cut to it have room together. */
const levelOf = (counts: readonly number[], room: number): number => {
  let left = room;
  const ascending = [...counts].sort((a, b) => a - b);
  for (const [index, count] of ascending.entries()) {
    const share = left / (ascending.length - index);
    if (count > share) return Math.floor(share);
    left -= count;
  }
  return Infinity;
};

const sum = (counts: readonly number[]): number => counts.reduce((a, b) => a + b, 0);
