import { defer, EMPTY, map, type Observable } from 'rxjs';
import { misuse } from '../values/errors.js';
import { countMessages, plainCounter } from '../models/count-request.js';
import { marker } from '../models/fit-messages.js';
import type { Layer } from '../seams/layer.js';
import { appended$, kept$, type LoadOptions, type Memory, noMemory } from '../values/memory.js';
import type { MemoryFactory } from './in-process-memory.js';
import { type AssistantMessage, type Message, textBlock, toolCallsOf } from '../values/message.js';
import { checkOptions, type Rule, wholeNumber } from '../values/options.js';
import { assertPaired } from '../run.js';
import { withResults } from './suspend.js';
import { isWaiting, lastTurnsFrom, turnStarts } from './transcript.js';
import { layerPlaces } from '../seams/layer-places.js';

export interface WindowMemoryOptions {
  /** Maximum number of turns: user messages with everything up to the answer. Default: 10. */
  readonly turns?: number | undefined;
}

/**
 * Loads the last turns only. The wrapped memory keeps everything. Tool calls and results stay together, a turn that waits
 * for a result is loaded with everything after it, and the first message starts with a note on how much is omitted.
 * Call ids must be unique: messages of a call with the id of an omitted one are not stored.
 */
export const windowMemory = (
  inner: MemoryFactory,
  options: WindowMemoryOptions = {},
): MemoryFactory => {
  checkInner('windowMemory()', inner);
  checkOptions('windowMemory()', options, rules);
  const { turns = 10 } = options;
  return shownBy(inner, (_sessionId, messages$) =>
    messages$.pipe(map((messages) => truncated(messages, lastTurnsFrom(messages, turns)))),
  );
};

const rules: Readonly<Record<keyof WindowMemoryOptions, Rule>> = { turns: wholeNumber(1) };

/** Omits the first messages, and notes their number at the start of the next one. */
export const truncated = (messages: readonly Message[], count: number): readonly Message[] => {
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
 * Stores user messages and answers only, without tools and thinking. Turns that failed or wait for a result are stored and
 * loaded completely until they are answered. This requires storing at the end of a call, with `withoutPhase(storeMemory)`: that
 * phase drops the tools of earlier messages of a turn. A message with unanswered tool calls errors with
 * `invalidState`. Messages stored before are loaded in the same way, and stay stored.
 */
export const inputAndAnswer = (inner: MemoryFactory): MemoryFactory => {
  checkInner('inputAndAnswer()', inner);
  return (sessionId) => {
    const memory = inner(sessionId);
    return {
      load$: (options) =>
        settled$(memory, options).pipe(map((messages) => turnsOf(messages).flatMap(shown))),
      append$: (messages, options = {}) =>
        defer(() => {
          assertPaired(messages.filter((message, index) => !isLate(message, messages[index - 1])));
          return appended$(
            memory,
            options.hasFailed === true || messages.some(isWaiting)
              ? messages
              : essenceOrLate(messages),
            options,
          );
        }),
      ...wholeOf(memory),
    };
  };
};

/** Messages after a turn without an answer belong to it: a result may come with a message. */
const turnsOf = (messages: readonly Message[]): readonly (readonly Message[])[] => {
  const starts = turnStarts(messages).filter((start) => start > 0 && isAnswer(messages[start - 1]));
  return [0, ...starts].map((start, index) => messages.slice(start, starts[index]));
};

const isAnswer = (message: Message | undefined): boolean =>
  message?.role === 'assistant' && toolCallsOf(message).length === 0;

const shown = (turn: readonly Message[]): readonly Message[] =>
  turn.some(isWaiting) || !isAnswer(turn.at(-1)) ? turn : lastAnswers(turn.flatMap(essence));

const essence = (message: Message): readonly Message[] => {
  if (message.role === 'user') return [message];
  return message.role === 'assistant' && toolCallsOf(message).length === 0 ? answer(message) : [];
};

/** Keeps late results: without them, the tool call would seem to wait forever. */
const essenceOrLate = (messages: readonly Message[]): readonly Message[] =>
  messages.flatMap((it, index) => (isLate(it, messages[index - 1]) ? [it] : essence(it)));

const isLate = ({ role }: Message, before: Message | undefined): boolean =>
  role === 'tool' && before?.role !== 'assistant';

const answer = (message: AssistantMessage): readonly Message[] => {
  const content = message.content.filter(({ type }) => type !== 'thinking');
  if (content.length === message.content.length) return [message];
  return content.length === 0 ? [] : [{ ...message, content }];
};

/** Keeps the last of several assistant messages in a row: the answer. */
const lastAnswers = (messages: readonly Message[]): readonly Message[] =>
  messages.filter(
    ({ role }, index) => role !== 'assistant' || messages[index + 1]?.role !== 'assistant',
  );

/** Throws a `config` error if a value is not a factory of memories. */
export const checkInner = (owner: string, inner: unknown): void => {
  if (typeof inner === 'function') return;
  throw misuse(`${owner} needs a factory of memories, such as inProcessMemory().`);
};

const settled$ = (
  memory: Memory,
  options: LoadOptions | undefined,
): Observable<readonly Message[]> => defer(() => memory.load$(options)).pipe(map(withResults));

type Shown = ReturnType<Memory['load$']>;

export const shownBy =
  (
    inner: MemoryFactory,
    show: (sessionId: string, messages$: Shown) => Shown,
    forget: (sessionId: string) => void = () => undefined,
  ): MemoryFactory =>
  (sessionId) => {
    const memory = inner(sessionId);
    return {
      load$: (options) => show(sessionId, settled$(memory, options)),
      append$: (...given) => defer(() => memory.append$(...given)),
      ...wholeOf(memory, () => forget(sessionId)),
    };
  };

/** Delegates all that is not loaded or appended to the wrapped memory, as far as it has it. */
export const wholeOf = (
  memory: Memory,
  forget: () => void = () => undefined,
): Omit<Memory, 'load$' | 'append$'> => ({
  all$: () => kept$(memory),
  ...(memory.branches$ !== undefined && {
    ...(memory.last$ && { last$: (options) => memory.last$?.(options) ?? EMPTY }),
    branches$: (at) => memory.branches$?.(at) ?? EMPTY,
    moveHead$: (to) => memory.moveHead$?.(to) ?? EMPTY,
    remove$: (at) => memory.remove$?.(at) ?? EMPTY,
  }),
  ...(memory.replace$ !== undefined && {
    replace$: (tree) =>
      defer(() => {
        forget();
        return memory.replace$?.(tree) ?? EMPTY;
      }),
  }),
});

/**
 * A layer that wraps the memory of the session: what calls of this agent load and store passes through, while `session.memory`
 * stays as it is. Calls outside of a session have no memory, and nothing to wrap.
 */
export const wrapMemory = (name: string, wrap: (inner: MemoryFactory) => MemoryFactory): Layer => {
  if (typeof wrap !== 'function') {
    throw misuse(
      "wrapMemory() takes a name and a function, such as wrapMemory('recent', windowMemory).",
    );
  }
  return {
    name,
    priority: layerPlaces.additions,
    call:
      ({ info: { sessionId = '' } }) =>
      (next) =>
      (call) =>
        next(
          call.memory === noMemory ? call : { ...call, memory: wrap(() => call.memory)(sessionId) },
        ),
  };
};
