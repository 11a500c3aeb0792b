import type { Input, InputMessage } from '../input.js';
import { type ContentBlock, isContentBlock, textBlock } from '../message.js';

/** An input as a list of messages, to which others can be added. What cannot be read is left to the call that gets it. */
export const messagesIn = (input: Input): readonly InputMessage[] => {
  if (typeof input === 'string') return [userMessage(input)];
  if (!isList(input)) return [fromOthers(input)];
  const parts: readonly (ContentBlock | InputMessage | string)[] = input;
  const blocks = parts.filter(isBlock);
  if (blocks.length === parts.length) return [{ role: 'user', content: blocks }];
  return parts.flatMap((part) =>
    isBlock(part) ? [] : typeof part === 'string' ? [userMessage(part)] : [part],
  );
};

const isList = (input: Input): input is Extract<Input, readonly unknown[]> => Array.isArray(input);

const isBlock = (part: ContentBlock | InputMessage | string): part is ContentBlock =>
  isContentBlock(part);

/** A text as a message of a user's. */
export const userMessage = (text: string): InputMessage => ({
  role: 'user',
  content: [textBlock(text)],
});

const fromOthers = (message: InputMessage): InputMessage =>
  message.role === 'assistant'
    ? {
        role: 'user',
        content: message.content.filter(isContentBlock),
        ...(message.name === undefined ? {} : { name: message.name }),
      }
    : message;
