import {
  type Message,
  type ModelRequest,
  textOf,
  type ToolDeclaration,
  toolUsesOf,
  type UserMessage,
} from '@millrace/core';

/** A tool that was used, and what came of it. */
export interface Observation {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly isError: boolean;
}

/** One question, and what has been done about it: the tools of each round, in the order they were asked. */
export interface Turn {
  readonly question: string;
  readonly rounds: readonly (readonly Observation[])[];
}

/** What a request asks, and the turns before, the oldest first. */
export interface Conversation extends Turn {
  readonly earlier: readonly Turn[];
  /** Tools that may be used now. */
  readonly mayAct: boolean;
  readonly declarations: readonly ToolDeclaration[];
}

/** Finds the question of a request, the results that are there for it, and the turn before. */
export const readConversation = ({
  messages,
  tools = [],
  toolChoice,
}: ModelRequest): Conversation => {
  const mayAct = tools.length > 0 && toolChoice !== 'none';
  const first = messages.findIndex(({ role }) => role === 'user');
  const asked = messages.findLastIndex(
    ({ role }, index) =>
      role === 'user' && (index === first || mayAct || !isClosing(messages, index)),
  );
  return {
    ...turnOf(messages, asked, messages.length),
    earlier: earlierTurns(messages, asked),
    mayAct,
    declarations: tools,
  };
};

/** Turns before the present one that are looked at. */
const mostEarlier = 4;

const earlierTurns = (messages: readonly Message[], end: number): readonly Turn[] => {
  const turns: Turn[] = [];
  let next = end;
  while (next > 0 && turns.length < mostEarlier) {
    const start = messages.findLastIndex(({ role }, index) => index < next && role === 'user');
    if (start < 0) break;
    turns.unshift(turnOf(messages, start, next));
    next = start;
  }
  return turns;
};

/** What a user says right behind results, where no tool may be used any more, is how to close and no question. */
const isClosing = (messages: readonly Message[], index: number): boolean =>
  messages[index - 1]?.role === 'tool';

/** Only the beginning of a question is read. */
export const longestQuestion = 8_000;

/** Rounds of tools that are looked at. */
const mostRounds = 40;

const turnOf = (messages: readonly Message[], start: number, end: number): Turn => {
  const asked = messages[start];
  const rounds = messages.slice(start + 1, end).flatMap((message, index, turn) => {
    const results = turn[index + 1];
    return message.role !== 'assistant' || results?.role !== 'tool'
      ? []
      : [roundOf(message, results)];
  });
  return {
    question: asked?.role === 'user' ? questionOf(asked) : '',
    rounds: rounds.slice(0, mostRounds),
  };
};

const questionOf = (message: UserMessage): string => {
  const text = textOf(message)
    .slice(0, longestQuestion)
    .replace(/[^\S\n]+/gu, ' ')
    .replace(numbering, '');
  return (text.match(bullet)?.length ?? 0) > 1 ? text.replace(bullet, '').trim() : text.trim();
};

/** `1. ` or `• ` before a line. */
const numbering = /(?<=^|\n) ?(?:•|\d{1,2}[.)]) (?=\S)/gu;

/** `- ` before a line; before a single one it may be a sign. */
const bullet = /(?<=^|\n) ?[-*] (?=\S)/gu;

const roundOf = (
  asked: Extract<Message, { role: 'assistant' }>,
  { content }: Extract<Message, { role: 'tool' }>,
): readonly Observation[] => {
  const results = new Map(content.map((result) => [result.toolUseId, result]));
  return toolUsesOf(asked).flatMap(({ id, name, input }) => {
    const result = results.get(id);
    return result === undefined
      ? []
      : [{ name, input, text: textOf(result), isError: result.isError }];
  });
};
