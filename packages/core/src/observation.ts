import { freezeResult } from './frozen.js';
import { type ContentBlock, textBlock, type ToolResultBlock } from './message.js';

export const rejectedResult = (toolUseId: string): ToolResultBlock =>
  freezeResult({
    type: 'tool_result',
    toolUseId,
    content: [textBlock('The result of this tool was rejected.')],
    isError: true,
  });

/** Cuts the text of an observation at so many characters, and adds a marker that names how many are missing. */
export const cutObservation = (
  content: readonly ContentBlock[],
  maxObservation: number,
): readonly ContentBlock[] => {
  const length = content.reduce((sum, block) => sum + lengthOf(block), 0);
  if (length <= maxObservation) return content;
  let room = maxObservation;
  const kept = content.flatMap((block): readonly ContentBlock[] => {
    if (block.type !== 'text') return [block];
    const text = headOf(block.text, room);
    room -= text.length;
    return text === '' ? [] : [textBlock(text)];
  });
  return [
    ...kept,
    textBlock(`\n[… ${length - maxObservation + room} of ${length} characters omitted]`),
  ];
};

const lengthOf = (block: ContentBlock): number => (block.type === 'text' ? block.text.length : 0);

const headOf = (text: string, length: number): string => {
  const head = text.slice(0, length);
  return /[\uD800-\uDBFF]$/.test(head) && head.length < text.length ? head.slice(0, -1) : head;
};
