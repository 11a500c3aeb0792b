import type { IncomingHttpHeaders } from 'node:http';
import type { Said } from './said.js';

/** What a request says, whatever its wire is. */
export interface Conversation {
  readonly said: readonly Said[];
  /** The names of the tools that it offers. */
  readonly tools: readonly string[];
}

/** One API of a vendor: how it is asked, and how it answers. */
export interface Wire {
  /** Behind the base URL. */
  readonly path: string;
  /** The key that a request has in its headers. */
  readonly keyOf: (headers: IncomingHttpHeaders) => unknown;
  /** Reads the body of a request. Throws a `Refusal` where the vendor would not take it. */
  readonly read: (body: Readonly<Record<string, unknown>>) => Conversation;
  /** The message of that number, which asks for so many tools, as the events of a stream. */
  readonly toolFrames: (message: number, tools: number, isWhole?: boolean) => readonly Buffer[];
  /** The message of that number, an answer of so many deltas, as the events of a stream. */
  readonly answerFrames: (message: number, deltas: number, isWhole?: boolean) => readonly Buffer[];
  /** The same two as one JSON value each. */
  readonly wholeTools: (message: number, tools: number) => unknown;
  readonly wholeAnswer: (message: number, deltas: number) => unknown;
}
