import type { ModelChunk } from '@millrace/core';
import type { Caps } from './caps.js';

/** One event of a vendor's stream, its data parsed. */
export interface WireEvent {
  /** The `event` field, where the vendor sends one. */
  readonly name?: string;
  readonly data: unknown;
}

/** How to read one answer. It may have a memory, so each answer has its own. */
export interface Reader {
  /** Reads one event. An error that the vendor reports in its stream is thrown with `failure()`. */
  readonly read: (event: WireEvent) => readonly ModelChunk[];
  /** Reads an answer that came whole where a stream was asked for. */
  readonly readWhole: (body: unknown) => readonly ModelChunk[];
  /** Tells whether a vendor says with an event that nothing follows, as `[DONE]` does. Default: none says so. */
  readonly isLast?: (event: WireEvent) => boolean;
  /**
   * Reads an error in a 200 response that is an answer of the model, such as a tool call that the vendor cannot parse.
   * Without chunks it stays an error. Default: every error stays one.
   */
  readonly readError?: (data: unknown) => readonly ModelChunk[];
  /** The chunks that `[DONE]` stands for, if a vendor ends its answers with it alone. Default: none. */
  readonly readDone?: () => readonly ModelChunk[];
}

/** One request to a vendor, and how to read what comes back. */
export interface Exchange extends Reader {
  /** What errors call the other side, such as `OpenAI`. */
  readonly vendor: string;
  /**
   * What must not be shown anywhere: keys, and credentials in addresses. The list may grow meanwhile, by a key that
   * is fetched for the request. Placeholders, and out of answers what may be a word, are left.
   */
  readonly secrets: readonly string[];
  /** Sends the request. `signal` aborts it, however far it has come. */
  readonly send: (signal: AbortSignal) => PromiseLike<Response>;
  readonly caps: Caps;
}
