import { defer, EMPTY, map, type Observable } from 'rxjs';
import { misuse } from '../values/errors.js';
import { countMessages, plainCounter } from '../models/count-request.js';
import { marker } from '../models/fit-messages.js';
import type { Layer } from '../seams/layer.js';
import { appended$, kept$, type Memory, noMemory } from '../values/memory.js';
import type { MemoryFactory } from './in-process-memory.js';
import { type AssistantMessage, type Message, textBlock, toolUsesOf } from '../values/message.js';
import { checkOptions, type Rule, wholeNumber } from '../values/options.js';
import { assertPaired } from '../run.js';
import { withResults } from './suspend.js';
import { isWaiting, lastTurnsFrom, turnStarts } from './transcript.js';

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

/**
 * Makes memories that keep what users said and what they were answered: no tools, no thinking. Of a turn that failed, or waits for a result, all is kept, and shown until it is answered:
 * whoever brings the result has to go on with what the turn has found. For that, memory must be written at the end of a call, as in the preset `guarded`; what the phase `storeMemory`
 * has written of a turn before it came to wait has no tools. A message whose tools have no results at all is refused with
 * `invalidState`. What memory held before is shown in the same way, and stays as it is.
 */
export const inputAndAnswer = (inner: MemoryFactory): MemoryFactory => {
  checkInner('inputAndAnswer()', inner);
  return (sessionId) => {
    const memory = inner(sessionId);
    return {
      load$: () => settled$(memory).pipe(map((messages) => turnsOf(messages).flatMap(shown))),
      append$: (messages, hasFailed = false) =>
        defer(() => {
          assertPaired(messages.filter((message, index) => !isLate(message, messages[index - 1])));
          return appended$(
            memory,
            hasFailed || messages.some(isWaiting) ? messages : messages.flatMap(essenceOrLate),
            hasFailed,
          );
        }),
      ...wholeOf(memory),
    };
  };
};

/** What follows a turn without an answer belongs to it: whoever brings a result may say something, too. */
const turnsOf = (messages: readonly Message[]): readonly (readonly Message[])[] => {
  const starts = turnStarts(messages).filter((start) => start > 0 && isAnswer(messages[start - 1]));
  return [0, ...starts].map((start, index) => messages.slice(start, starts[index]));
};

const isAnswer = (message: Message | undefined): boolean =>
  message?.role === 'assistant' && toolUsesOf(message).length === 0;

const shown = (turn: readonly Message[]): readonly Message[] =>
  turn.some(isWaiting) || !isAnswer(turn.at(-1)) ? turn : lastAnswers(turn.flatMap(essence));

const essence = (message: Message): readonly Message[] => {
  switch (message.role) {
    case 'user':
      return [message];
    case 'tool':
      return [];
    case 'assistant':
      return toolUsesOf(message).length === 0 ? answer(message) : [];
  }
};

/** Results that come later are needed once more: without them, the tool would seem to wait for ever. */
const essenceOrLate = (
  message: Message,
  index: number,
  messages: readonly Message[],
): readonly Message[] => (isLate(message, messages[index - 1]) ? [message] : essence(message));

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

/** Refuses what makes no memories. */
export const checkInner = (owner: string, inner: unknown): void => {
  if (typeof inner === 'function') return;
  throw misuse(`${owner} needs a factory of memories, such as inProcessMemory() makes.`);
};

const settled$ = (memory: Memory): Observable<readonly Message[]> =>
  defer(() => memory.load$()).pipe(map(withResults));

export const shownBy =
  (
    inner: MemoryFactory,
    show: (
      sessionId: string,
      messages$: Observable<readonly Message[]>,
    ) => ReturnType<Memory['load$']>,
    /** Hears when all that there was is to be replaced. */
    forget: (sessionId: string) => void = () => undefined,
  ): MemoryFactory =>
  (sessionId) => {
    const memory = inner(sessionId);
    return {
      load$: () => show(sessionId, settled$(memory)),
      append$: (...given) => defer(() => memory.append$(...given)),
      ...wholeOf(memory, () => forget(sessionId)),
    };
  };

/** What one that shows another memory passes on to it: all that it keeps can be read, and replaced where it can. */
const wholeOf = (
  memory: Memory,
  forget: () => void = () => undefined,
): Pick<Memory, 'all$' | 'replace$'> => ({
  all$: () => kept$(memory),
  ...(memory.replace$ !== undefined && {
    replace$: (messages) =>
      defer(() => {
        forget();
        return memory.replace$?.(messages) ?? EMPTY;
      }),
  }),
});

/** Has the calls of an agent remember through other memories, made of those of their sessions. */
export const throughMemory = (
  name: string,
  wrap: (inner: MemoryFactory) => MemoryFactory,
): Layer => ({
  name,
  priority: 54,
  call:
    ({ call: { sessionId = '' } }) =>
    (next) =>
    (call) =>
      next(
        call.memory === noMemory ? call : { ...call, memory: wrap(() => call.memory)(sessionId) },
      ),
});
