import { defer } from 'rxjs';
import { checkInner } from '../memories/inner-memory.js';
import { appended$, type MemoryFactory } from '../memory.js';
import { type Message, textBlock } from '../message.js';
import { usesIn } from '../tools/suspend.js';
import { retrieveMemoryName } from './memory-tools.js';

/** Makes memories that keep that something was recalled by a tool, and not what: it is remembered already, and may change or be forgotten. */
export const withoutRecalled = (inner: MemoryFactory): MemoryFactory => {
  checkInner('withLongTermMemory()', inner);
  return (sessionId) => {
    const memory = inner(sessionId);
    return {
      load$: () => memory.load$(),
      append$: (messages) => defer(() => appended$(memory, stripped(messages))),
    };
  };
};

const notKept = '[What was recalled is not kept here. Retrieve it again where it is needed.]';

const stripped = (messages: readonly Message[]): readonly Message[] => {
  const uses = usesIn(messages);
  return messages.map((message) =>
    message.role === 'tool'
      ? {
          ...message,
          content: message.content.map((result) =>
            uses.get(result.toolUseId)?.name === retrieveMemoryName && !result.isError
              ? { ...result, content: [textBlock(notKept)] }
              : result,
          ),
        }
      : message,
  );
};
