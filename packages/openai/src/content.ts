import type { ContentBlock, ToolResultBlock } from 'millrace';
import type { MediaBlock } from './media.js';

/** The text of a tool result for the model. A failure starts with `Error`. */
export const resultText = ({ content, isError }: ToolResultBlock): string => {
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const text = texts.join('\n') || '(no text)';
  return isError && !/^error\b/iu.test(text) ? `Error: ${text}` : text;
};

/** A string for a single text, because not every server accepts parts; otherwise the non-empty parts. */
export const contentOf = <Part>(
  content: readonly ContentBlock[],
  toPart: (block: ContentBlock) => Part,
): string | Part[] => {
  const nonEmpty = content.filter((block) => block.type !== 'text' || block.text !== '');
  const [only, ...more] = nonEmpty;
  if (only === undefined) return '';
  return only.type === 'text' && more.length === 0 ? only.text : nonEmpty.map(toPart);
};

export const mediaOf = (content: readonly ContentBlock[]): readonly MediaBlock[] =>
  content.filter((block) => block.type !== 'text');
