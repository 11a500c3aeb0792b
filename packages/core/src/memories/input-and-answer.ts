import { defer, map } from 'rxjs';
import type { MemoryFactory } from '../memory.js';
import type { AssistantMessage, Message } from '../message.js';
import { toolUsesOf } from '../message.js';
import { assertPaired } from '../run.js';
import { checkInner, settled$ } from './inner-memory.js';
import { isWaiting } from './turns.js';

/**
 * Makes memories that keep what users said and what they were answered: no tools, no thinking. What a tool use needs that waits
 * for its result is kept until it has come, and not shown from then on. A message whose tools have no results at all is refused with
 * `invalidState`. What memory held before is shown in the same way, and stays as it is.
 */
export const inputAndAnswer = (inner: MemoryFactory): MemoryFactory => {
  checkInner('inputAndAnswer()', inner);
  return (sessionId) => {
    const memory = inner(sessionId);
    return {
      load$: () => settled$(memory).pipe(map((messages) => lastAnswers(messages.flatMap(essence)))),
      append$: (messages) =>
        defer(() => {
          assertPaired(messages.filter((message, index) => !isLate(message, messages[index - 1])));
          return memory.append$(messages.flatMap(essenceOrLate));
        }),
    };
  };
};

/** What is kept of a message that stands in its place. */
const essence = (
  message: Message,
  index: number,
  messages: readonly Message[],
): readonly Message[] => {
  switch (message.role) {
    case 'user':
      return [message];
    case 'tool':
      return isWaiting(message) ? [message] : [];
    case 'assistant': {
      if (toolUsesOf(message).length === 0) return answer(message);
      const results = messages[index + 1];
      return results !== undefined && isWaiting(results) ? [message] : [];
    }
  }
};

/** Results that come later are needed once more: without them, the tool would seem to wait for ever. */
const essenceOrLate = (
  message: Message,
  index: number,
  messages: readonly Message[],
): readonly Message[] =>
  isLate(message, messages[index - 1]) ? [message] : essence(message, index, messages);

const isLate = ({ role }: Message, before: Message | undefined): boolean =>
  role === 'tool' && before?.role !== 'assistant';

const answer = (message: AssistantMessage): readonly Message[] => {
  const content = message.content.filter(({ type }) => type !== 'thinking');
  if (content.length === message.content.length) return [message];
  return content.length === 0 ? [] : [{ ...message, content }];
};

/** Of what was said in a row, the last is the answer. */
const lastAnswers = (messages: readonly Message[]): readonly Message[] =>
  messages.filter(
    ({ role }, index) => role !== 'assistant' || messages[index + 1]?.role !== 'assistant',
  );
