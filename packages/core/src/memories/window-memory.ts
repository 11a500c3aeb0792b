import { map } from 'rxjs';
import type { MemoryFactory } from '../memory.js';
import { checkOptions, type Rule, wholeNumber } from '../options.js';
import { checkInner, shownBy } from './input-and-answer.js';
import { lastTurnsFrom } from './turns.js';
import { countMessages } from '../fitting/count-request.js';
import { marker } from '../fitting/fit-messages.js';
import { plainCounter } from '../fitting/token-counter.js';
import { type Message, textBlock } from '../message.js';

/** How much a window shows. */
export interface WindowMemoryOptions {
  /** Turns: what a user said, and all that came of it up to the answer. Default: 10. */
  readonly turns?: number;
}

/**
 * Makes memories that give the last turns only. The memory below keeps all, and is written as it is. Tool uses and their results stay together,
 * a turn that waits for a result is given with all behind it, and the first message given says at its head how much is left out.
 * That a call has the id of one that is left out is not noticed, and its messages are then not added: let calls have ids of their own.
 */
export const windowMemory = (
  inner: MemoryFactory,
  options: WindowMemoryOptions = {},
): MemoryFactory => {
  checkInner('windowMemory()', inner);
  checkOptions('windowMemory()', options, rules);
  const { turns = 10 } = options;
  return shownBy(inner, (_sessionId, messages$) =>
    messages$.pipe(map((messages) => leftOut(messages, lastTurnsFrom(messages, turns)))),
  );
};

const rules: Readonly<Record<keyof WindowMemoryOptions, Rule>> = { turns: wholeNumber(1) };

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
