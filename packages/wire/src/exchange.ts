import type { ModelChunk } from 'millrace';
import type { Caps } from './caps.js';
import type { HeadersLike } from './retry-after.js';

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
  /** Returns the unseen work that is open after the events so far, such as reasoning or a tool of the vendor. Default: none. */
  readonly working?: () => string | undefined;
  /** Whether an event means that nothing follows, as `[DONE]` does. Default: no event does. */
  readonly isLast?: (event: WireEvent) => boolean;
  /**
   * Reads the usage in an event or a body that fails: in what the vendor reports as an error, or in what `read` throws at. Such an
   * answer has a cost, too. Default: none.
   */
  readonly usage?: (data: unknown) => readonly ModelChunk[];
  /**
   * Reads an error that counts as an answer, such as a tool call that the vendor cannot parse. If it returns no chunks,
   * the call errors. Default: no error counts as an answer.
   */
  readonly readError?: (data: unknown) => readonly ModelChunk[];
  /** Returns the chunks that `[DONE]` stands for, if a vendor sends no other finish. Default: none. */
  readonly readDone?: () => readonly ModelChunk[];
}

/** A request to a vendor: a POST with a JSON body. Header names are lowercase. */
export interface WireRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface ResponseHead {
  readonly status: number;
  readonly headers: HeadersLike;
}

/** Receives one response. Nothing is called after `end`, `fail` or an abort. */
export interface Receiver {
  head(head: ResponseHead): void;
  /** Returns whether to read on; if false, `resume` continues. */
  bytes(bytes: Uint8Array): boolean;
  end(): void;
  /** The connection failed, or the body cannot be decompressed. */
  fail(thrown: unknown): void;
}

/** A request that is on its way, and its response. */
export interface Transfer {
  start(): void;
  resume(): void;
  /** Closes the connection immediately, at any stage. */
  abort(): void;
}

/** The key of a `TransferInterceptor` in the context of a request. Wrappers of models copy contexts, with it. */
export const transferInterceptor: unique symbol = Symbol.for('@millrace/wire/transfer');

/** Creates the transfer of a request by `create`, in order to see what passes. `clean` replaces secrets. */
export type TransferInterceptor = (
  request: WireRequest,
  receiver: Receiver,
  create: (receiver: Receiver) => Transfer,
  clean: (text: string) => string,
) => Transfer;

/** Knowledge from the answers of one model about how its server ends them. Mutable: each answer updates it. */
export interface Endings {
  /** The server sent all of an answer, and neither ended the response nor announced its end. */
  staysOpen: boolean;
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
  /** Called when the request is sent: it may fetch a key. */
  readonly request: () => WireRequest | PromiseLike<WireRequest>;
  /** The `fetch` to send it with. Default: the global one, or the connections that it uses. */
  readonly fetch?: typeof fetch | undefined;
  readonly caps: Caps;
  /** How the server ended earlier answers. Default: nothing is known. */
  readonly endings?: Endings | undefined;
}
