import type { ModelChunk } from '@millrace/core';
import type { Caps } from './caps.js';

/** One event of a vendor's stream, its data parsed. */
export interface WireEvent {
  /** The `event` field, if the vendor sends one. */
  readonly name?: string;
  readonly data: unknown;
}

/** How to read one answer. A reader may be stateful, so each answer has its own. */
export interface Reader {
  /** Reads one event. Throws `failure()` for an error that the vendor reports in its stream. */
  readonly read: (event: WireEvent) => readonly ModelChunk[];
  /** Reads the JSON body of a server that answered without streaming. */
  readonly readWhole: (body: unknown) => readonly ModelChunk[];
  /** Whether an event means that nothing follows, as `[DONE]` does. Default: no event does. */
  readonly isLast?: (event: WireEvent) => boolean;
  /**
   * Reads an error in a 200 response that counts as an answer, such as a tool call that the vendor cannot parse. If it
   * returns no chunks, the call errors. Default: no error counts as an answer.
   */
  readonly readError?: (data: unknown) => readonly ModelChunk[];
  /** Returns the chunks that `[DONE]` stands for, if a vendor sends no other finish. Default: none. */
  readonly readDone?: () => readonly ModelChunk[];
}

/** One request to a vendor, and how to read what comes back. */
export interface Exchange extends Reader {
  /** The name of the vendor in errors, such as `OpenAI`. */
  readonly vendor: string;
  /**
   * Values to redact everywhere: keys, and credentials in URLs. The list may grow by a key that is fetched for the
   * request. Placeholders are not redacted, nor, in answers, secrets that may be an ordinary word.
   */
  readonly secrets: readonly string[];
  /** Sends the request. `signal` aborts it at any stage. */
  readonly send: (signal: AbortSignal) => PromiseLike<Response>;
  readonly caps: Caps;
}
