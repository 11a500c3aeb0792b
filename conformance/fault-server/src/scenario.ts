/** The three ways in which vendors are asked: OpenAI's chat completions, OpenAI's Responses, Anthropic's messages. */
export type Wire = 'chat' | 'responses' | 'messages';

/** Every wire. */
export const wires: readonly Wire[] = ['chat', 'responses', 'messages'];

/** What is sent: a text as UTF-8, or any bytes as base64. */
export type Bytes = string | { readonly base64: string };

/**
 * How bytes are cut: not at all, every so many bytes, or into pieces of these sizes and a rest. Each piece goes out
 * as a packet of its own, though a client that is slow may still read several at once.
 */
export type Pieces = 'whole' | number | readonly number[];

/**
 * One step of a response. Texts and header values may hold `{{key}}` (the key of the request), `{{self}}` (the
 * address it was sent to) and `{{other}}` (the same path at another origin, whose requests are seen as well).
 *
 * - `status` sends the status line and the headers. Without one, the first bytes send status 200.
 * - `bytes` sends them, `times` over (default 1).
 * - `wait` says nothing for so many milliseconds.
 * - `reset` breaks the connection off with a TCP reset, `hangUp` closes it in good order but without an end.
 * - `stall` says nothing more, but for heartbeats, until the client leaves.
 * - `forever` sends the same bytes as fast as the client reads, until it leaves.
 */
export type Step =
  | {
      readonly type: 'status';
      readonly code: number;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | {
      readonly type: 'bytes';
      readonly bytes: Bytes;
      readonly times?: number;
      readonly pieces?: Pieces;
    }
  | { readonly type: 'wait'; readonly ms: number }
  | { readonly type: 'reset' }
  | { readonly type: 'hangUp' }
  | { readonly type: 'stall'; readonly heartbeat?: Heartbeat }
  | { readonly type: 'forever'; readonly bytes: string };

/** What a stalled response says from time to time. */
export interface Heartbeat {
  readonly bytes: string;
  readonly everyMs: number;
}

/** The steps of one response. One that runs out of them ends in good order. */
export type ResponseScript = readonly Step[];

/** What a vendor does, as data. */
export interface Scenario {
  /** The n-th request gets the n-th response; those beyond the last get the last again. */
  readonly responses: readonly ResponseScript[];
  /** Whether a key must be sent, as to the vendor (default), or not, as to a server on one's own machine. */
  readonly auth?: 'vendor' | 'none';
  /** Fields that this vendor takes, or wants, beside those of the wire; at any depth. */
  readonly allow?: readonly string[];
}

/** A request as the server saw it. */
export interface SeenRequest {
  readonly method: string;
  /** The path behind the base URL, with the query. */
  readonly path: string;
  /** Whether it came to the other origin, to which no request should be led. */
  readonly atOther: boolean;
  readonly headers: Readonly<Record<string, string>>;
  /** The JSON of the body, or its text where it is none. */
  readonly body: unknown;
  /** Why the vendor would refuse it. Then it has refused it, whatever the scenario says. */
  readonly violations: readonly string[];
  /** Whether the client left before the response had ended. */
  readonly closedEarly: boolean;
  /** Bytes of the response's body. */
  readonly bytesWritten: number;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** When the response had ended, or the client had left. Absent while the response goes on. */
  readonly closedAt?: number;
}
