import { frozen } from './frozen.js';
import type { Message, ToolResultBlock } from './message.js';

/** Freezes a message through and through, but for the `details` of results: those are the tool's own. */
export const freezeMessage = (message: Message): Message =>
  message.role === 'tool' && !Object.isFrozen(message)
    ? Object.freeze({ ...message, content: Object.freeze(message.content.map(freezeResult)) })
    : frozen(message);

/** Freezes a tool's result, but for its `details`. */
export const freezeResult = (result: ToolResultBlock): ToolResultBlock => {
  frozen(result.content);
  frozen(result.suspended);
  return Object.freeze(result);
};
