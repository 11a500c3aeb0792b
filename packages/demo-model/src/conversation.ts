import {
  type AssistantMessage,
  type Message,
  type ModelRequest,
  textOf,
  type ToolMessage,
  toolCallsOf,
} from 'millrace';
import type { Input } from './fill-arguments.js';

/** A tool call, and its result. */
export interface Observation {
  readonly name: string;
  readonly input: Input;
  readonly text: string;
  readonly isError: boolean;
}

/** A question, and the results of the tool calls made for it, by iteration. */
export interface Turn {
  readonly question: string;
  readonly rounds: readonly (readonly Observation[])[];
}

/** The turn that a request continues, and some of the turns before, the oldest first. */
export interface Conversation extends Turn {
  readonly earlier: readonly Turn[];
  readonly mayCallTools: boolean;
}

const longestQuestion = 8_000;
const mostRounds = 40;
const mostEarlier = 4;

/** Finds the question of a request, and what has been done about it. */
export const readConversation = (request: ModelRequest): Conversation => {
  const { messages, tools = [], toolChoice } = request;
  const mayCallTools = tools.length > 0 && toolChoice !== 'none';
  const users = messages.flatMap(({ role }, at) => (role === 'user' ? [at] : []));
  // A user message directly after results, when no tool may be called, says how to close and asks nothing.
  const questions = users.filter(
    (at) => mayCallTools || at === users[0] || messages[at - 1]?.role !== 'tool',
  );
  const turns = questions
    .slice(-mostEarlier - 1)
    .map((start, at, starts) => turnOf(messages.slice(start, starts[at + 1])));
  const current = turns.at(-1) ?? { question: '', rounds: [] };
  return { ...current, earlier: turns.slice(0, -1), mayCallTools };
};

const turnOf = ([asked, ...rest]: readonly Message[]): Turn => {
  const rounds = rest.flatMap((message, at) => {
    const results = rest[at + 1];
    const isRound = message.role === 'assistant' && results?.role === 'tool';
    return isRound ? [roundOf(message, results)] : [];
  });
  const question = asked?.role === 'user' ? textOf(asked).slice(0, longestQuestion).trim() : '';
  return { question, rounds: rounds.slice(0, mostRounds) };
};

/** A person has found out that the call did not happen, such as after a crash: it is planned once more. */
const asksAgain = /\bCall the tool again, with the same arguments\.$/u;

const roundOf = (asked: AssistantMessage, { content }: ToolMessage): readonly Observation[] => {
  const results = new Map(content.map((result) => [result.toolCallId, result]));
  return toolCallsOf(asked).flatMap(({ id, name, input }) => {
    const result = results.get(id);
    if (result === undefined || asksAgain.test(textOf(result))) return [];
    return [{ name, input, text: textOf(result), isError: result.isError }];
  });
};
