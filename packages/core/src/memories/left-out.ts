import { countMessages } from '../fitting/count-request.js';
import { marker } from '../fitting/fit-messages.js';
import { plainCounter } from '../fitting/token-counter.js';
import { type Message, textBlock } from '../message.js';

/** Leaves out the first messages, and says at the head of the first one that is left how much that is. */
export const leftOut = (messages: readonly Message[], count: number): readonly Message[] => {
  if (count === 0) return messages;
  const tokens = countMessages(plainCounter, messages.slice(0, count));
  const marked = textBlock(marker(count, tokens));
  return messages
    .slice(count)
    .map((message, index) =>
      index === 0 && message.role === 'user'
        ? { ...message, content: [marked, ...message.content] }
        : message,
    );
};
