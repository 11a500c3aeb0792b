import { freeze } from 'immer';
import type { Message, ToolResultBlock } from './message.js';

/** Freezes a message through and through, but for the `details` of results: those are the tool's own. */
export const freezeMessage = (message: Message): Message =>
  message.role === 'tool'
    ? Object.freeze({ ...message, content: Object.freeze(message.content.map(freezeResult)) })
    : freeze(message, true);

/** Freezes a tool's result, but for its `details`. */
export const freezeResult = (result: ToolResultBlock): ToolResultBlock => {
  freeze(result.content, true);
  return Object.freeze(result);
};
