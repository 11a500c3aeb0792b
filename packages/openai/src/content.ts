import type { ContentBlock, ToolResultBlock } from '@millrace/core';
import type { MediaBlock } from './media.js';

/** The text of a tool result, as the model reads it: a failure says that it is one. */
export const resultText = ({ content, isError }: ToolResultBlock): string => {
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const text = texts.join('\n') || '(no text)';
  return isError && !/^error\b/iu.test(text) ? `Error: ${text}` : text;
};

/** Content as a wire takes it: text alone as a string, because not every server takes a list, else the parts of it that say something. */
export const contentOf = <Part>(
  content: readonly ContentBlock[],
  toPart: (block: ContentBlock) => Part,
): string | Part[] => {
  const nonEmpty = content.filter((block) => block.type !== 'text' || block.text !== '');
  const [only, ...more] = nonEmpty;
  if (only === undefined) return '';
  return only.type === 'text' && more.length === 0 ? only.text : nonEmpty.map(toPart);
};

/** The blocks that are no text. */
export const mediaOf = (content: readonly ContentBlock[]): readonly MediaBlock[] =>
  content.filter((block) => block.type !== 'text');
