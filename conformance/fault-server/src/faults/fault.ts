import type { ResponseScript, Scenario, Wire } from '../scenario.js';
import { streamed } from '../steps.js';
import type { Answer } from '../streams/answer.js';
import { streamOf } from '../streams/wires.js';

/** How a call ends under a fault: with an answer, with a reply for another reason, or with an error. */
export type Outcome =
  | { readonly answer: string }
  | { readonly reason: 'refused' | 'truncated' }
  | {
      /** The code of a `MillraceError`, or several of which any will do. */
      readonly error: string | readonly string[];
      /** What it must say of itself; absent where either will do. */
      readonly retryable?: boolean;
      readonly retryAfterMs?: number;
    };

/**
 * What must be seen of a call under a fault, where
 *
 * - the agent has one tool, `weather({ city: string })`, with `city` required, and answers anything,
 * - a request is sent at most three times in all, 5 to 10 ms apart, and waits of up to 60 s are obeyed,
 * - the first content, and each piece after it, may take 150 ms in faults of the row X3, and as long as they like in others,
 * - the caps are 100,000 characters of text, 20,000 of arguments, 128 tool uses, 100 levels of arguments, 1,000,000
 *   characters an event, and 65,536 bytes of an error.
 */
export interface Expectation {
  readonly outcome: Outcome;
  /** Requests that are sent, to whatever origin. */
  readonly requests: number;
  /** Milliseconds that at least pass between the first request and the second. */
  readonly waitMs?: number;
  /** Each response that the server does not end by itself must be closed by the client; and there is one. */
  readonly closes?: true;
  /** The inputs with which the tool runs, in order. Absent where no tool is asked for. */
  readonly runs?: readonly Readonly<Record<string, unknown>>[];
  /** Results that the call waits for at first, by the IDs of tool calls. Then it is continued with them. */
  readonly resumes?: Readonly<Record<string, unknown>>;
  /** Requests that continue an answer which the vendor paused. */
  readonly pauses?: number;
  /** Pieces of JSON that the last request must have. */
  readonly sends?: readonly string[];
}

/** One way in which a vendor goes wrong, or is odd. */
export interface Fault {
  /** Unique among all faults. */
  readonly id: string;
  /** The row of the behaviour that it puts to the test. */
  readonly row: string;
  readonly about: string;
  readonly wires: readonly Wire[];
  /** What the server does. Begin it anew for each play: dates in it are counted from then. */
  readonly scenario: (wire: Wire) => Scenario;
  readonly expects: Expectation;
}

/** What a vendor says where all is well. */
export const sunny: Answer = { text: ['It is ', 'sunny.'] };

/** How a call ends with it. */
export const isSunny: Outcome = { answer: 'It is sunny.' };

/** What a vendor says when it has got the results of the tools. */
export const done: Answer = { text: 'Done.' };

/** How a call with tools ends. */
export const isDone: Outcome = { answer: 'Done.' };

/** A question to the tool. */
export const askOslo: Answer = { toolCalls: [{ arguments: ['{"city":', '"Oslo"}'] }] };

/** Answers well. */
export const answering = (wire: Wire, answer: Answer): ResponseScript =>
  streamed(streamOf(wire, answer));

/** The events of an answer up to the one that says something, this one included. */
export const upTo = (events: readonly string[], words: string): readonly string[] => {
  const at = events.findIndex((event) => event.includes(words));
  if (at === -1) throw new Error(`No event says ${words}.`);
  return events.slice(0, at + 1);
};

/** An error behind which a retry has no sense, or is not ours to make. */
export const fails = (error: string, requests: number, retryable?: boolean): Expectation => ({
  outcome: { error, ...(retryable === undefined ? {} : { retryable }) },
  requests,
});

/** An error that stays after three requests. */
export const failsThrice = (error: string): Expectation => fails(error, 3, true);
