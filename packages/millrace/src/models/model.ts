import type { Observable, SchedulerLike } from 'rxjs';
import type { Demand } from '../flow/demand.js';
import type {
  Citation,
  ContentBlock,
  Finish,
  Message,
  Suspends,
  TextPhase,
  ToolCallBlock,
  VendorBlock,
  VendorData,
  VendorFacts,
} from '../values/message.js';
import type { MillraceError } from '../values/errors.js';
import type { JsonSchema } from '../values/schema.js';
import type { Usage } from '../values/usage.js';

export interface ToolDeclaration {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly vendorOptions?: VendorOptions | undefined;
}

/** Further fields of a tool in requests, by vendor, such as `{ Anthropic: { defer_loading: true } }`. */
export type VendorOptions = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Which tools the model may or must call: any, none, at least one, or this one. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string };

/** The options of a request. An absent option has the vendor's default. */
export interface RequestOptions {
  readonly system?: string;
  /** The length of the start of `system` that is the same in every call, so vendors can cache it on its own. */
  readonly fixedSystem?: number;
  readonly tools?: readonly ToolDeclaration[];
  readonly toolChoice?: ToolChoice;
  readonly temperature?: number;
  /** Maximum number of tokens of the answer. */
  readonly maxTokens?: number;
  readonly stopSequences?: readonly string[];
  /** The final answer must be JSON of this schema, without other text. */
  readonly outputSchema?: JsonSchema;
}

export interface ModelRequest extends RequestOptions {
  readonly messages: readonly Message[];
}

/**
 * One chunk of an answer, in the order in which the model produced it.
 *
 * - `text` and `thinking` carry deltas; a `signature` ends its thinking block. `vendorData` is added to the block, and ends it.
 * - `textStart` starts a new block of text; with `separate`, a new message within the answer.
 * - `citation` adds a source to the last text.
 * - `block` adds a whole block: media, or a part that only the vendor understands.
 * - `toolCall` chunks belong together by `index` and `id`; without either, a `name` starts the next one. `json` is a delta of
 *   the arguments, `input` all of them. A call whose name or arguments may be in other chunks is not run.
 * - `usage` is cumulative for the request: a later chunk replaces an earlier one field by field.
 * - `facts` are what the vendor reports about the answer: a later chunk replaces an earlier one field by field.
 * - `restart` discards everything before it: the request was sent again, or, with `isSameRequest`, the end of the answer
 *   contradicted what was streamed, and all of it follows.
 * - `malformed` reports text that could not be read as an action, with feedback for the model.
 * - `finish` is why the answer ended. A stream without it is incomplete. Content that follows counts, and the last finish
 *   applies.
 */
export type ModelChunk =
  | {
      readonly type: 'text';
      readonly text: string;
      readonly vendorData?: VendorData;
      /** Bytes of the answer are not UTF-8: no tool call that is read from its text may run. */
      readonly isDamaged?: boolean;
    }
  | {
      readonly type: 'textStart';
      readonly separate?: boolean;
      readonly phase?: TextPhase;
      readonly vendorData?: VendorData;
    }
  | { readonly type: 'citation'; readonly citation: Citation }
  | {
      readonly type: 'thinking';
      readonly text: string;
      readonly signature?: string;
      readonly redacted?: boolean;
      readonly vendorData?: VendorData;
    }
  | {
      readonly type: 'toolCall';
      readonly index?: number;
      readonly id?: string;
      readonly name?: string;
      readonly json?: string;
      readonly input?: unknown;
      /** The tool is not run; the model gets this text as the result. */
      readonly refusal?: string;
      /** Without a tool of that name, the call is suspended with this request. */
      readonly suspends?: Suspends;
      readonly vendorData?: VendorData;
    }
  | { readonly type: 'block'; readonly block: ContentBlock | VendorBlock }
  | { readonly type: 'usage'; readonly usage: Partial<Usage> }
  | { readonly type: 'facts'; readonly facts: VendorFacts }
  | { readonly type: 'restart'; readonly why: string; readonly isSameRequest?: boolean }
  | ({ readonly type: 'malformed' } & Malformed)
  | { readonly type: 'finish'; readonly finish: Finish | 'pause' };

export interface Malformed {
  /** The message to the model. */
  readonly feedback: string;
  /** A short form for logs and errors. Default: the first line of the feedback. */
  readonly why?: string;
  /** The complete text, if the chunks do not contain it. */
  readonly written?: string;
  /** Whether the text is accepted as the answer after the last correction. Default: true if `written` is absent. */
  readonly isAnswer?: boolean;
  /** The model only thought: it neither called a tool nor answered. */
  readonly isThought?: boolean;
}

export type ModelReport =
  | {
      readonly type: 'modelRetry';
      readonly model: string;
      /** The attempt that failed, from 1. */
      readonly attempt: number;
      readonly attempts: number;
      /** Milliseconds until the next attempt. */
      readonly waitMs: number;
      readonly error: MillraceError;
    }
  | {
      readonly type: 'modelWaiting';
      readonly model: string;
      /** Milliseconds without content. Reported once per wait, after 10 seconds. */
      readonly waitedMs: number;
      /** The unseen work of the model, such as `reasoning` or `web_search`, if its connection shows that it works. */
      readonly on?: string;
    }
  | {
      readonly type: 'modelFallback';
      readonly from: string;
      readonly to: string;
      readonly error: MillraceError;
    }
  | {
      readonly type: 'repaired';
      /** The JSON or the tool name that the model wrote. */
      readonly before: string;
      /** The repaired form of it. */
      readonly after: string;
      /** The repaired tool call; absent for a whole action and for an answer. */
      readonly toolCall?: ToolCallBlock;
    }
  | {
      readonly type: 'queued';
      /** The limit it waits for: concurrent requests, the rate per minute, or concurrent calls. */
      readonly why: LimitKind;
      readonly ahead: number;
    }
  | { readonly type: 'admitted'; readonly why: LimitKind; readonly waitedMs: number }
  | { readonly type: 'warning'; readonly message: string };

export type LimitKind = 'concurrency' | 'rate' | 'calls';

export interface ModelContext {
  /** While it is closed, the model does not read from its socket. */
  readonly demand: Demand;
  /** The scheduler for every wait. */
  readonly scheduler: SchedulerLike;
  /** Emits a retry, a fallback or a warning as an event of the call. */
  readonly report: (event: ModelReport) => void;
  /** The id of the call. Its input messages have ids that start with it. */
  readonly callId?: string;
  /** The position in the run, `callId/iteration`, the same in a resumed call. */
  readonly stepId: string;
  /**
   * Called by a model for each sign that it works without content: an event while reasoning or a tool of the vendor is
   * open. Then `busyMs` limits the wait instead of `firstChunkMs` and `chunkMs`.
   */
  readonly working?: (on: string) => void;
  /** Called with the messages that are sent instead if an inner wrapper shortens the request. */
  readonly shortened?: (messages: readonly Message[]) => void;
  /** A number in [0, 1), the same sequence for the same step. */
  readonly random: () => number;
  /** Timeouts of the caller or of an outer wrapper. They override those of inner wrappers. */
  readonly timeouts?: ModelTimeouts;
  /** Whether an outer wrapper retries; inner ones then do not. */
  readonly isRetried?: boolean;
  /** The remaining retries of the whole call. Default: unlimited. */
  readonly retryBudget?: RetryBudget;
}

/** How long a model may be silent while demand is open, in milliseconds. Default: no limit. */
export interface ModelTimeouts {
  /** From the request to the first content: text, thinking or a tool call. Heartbeats do not count. */
  readonly firstChunkMs?: number | undefined;
  /** From one piece of content to the next. */
  readonly chunkMs?: number | undefined;
  /** From one piece of content to the next while its connection shows that it works. Not retried. Default: 600,000. */
  readonly busyMs?: number | undefined;
}

export interface RetryBudget {
  /** Takes a retry; returns false if no retry is left. */
  take(): boolean;
}

/**
 * A model as the loop asks it: a name, and a function from a request to the chunks of one answer.
 *
 * `stream$` is cold: subscribing sends the request, and unsubscribing aborts it. An answer is a stream of chunks that ends with a `finish`;
 * a failure is an error, best a `MillraceError` that is `retryable` or not. Test a model with `modelContract` of `millrace/testing`.
 *
 * @example
 * ```ts
 * import {
 *   createAgent,
 *   type Model,
 *   type ModelChunk,
 *   type ModelRequest,
 *   textOf,
 * } from 'millrace';
 * import { defer } from 'rxjs';
 *
 * const answerTo = ({ messages }: ModelRequest): readonly ModelChunk[] => {
 *   const question = messages.map(textOf).at(-1) ?? '';
 *   return [
 *     ...question.split(' ').map((word): ModelChunk => ({ type: 'text', text: `${word}! ` })),
 *     { type: 'usage', usage: { inputTokens: question.length, outputTokens: question.length } },
 *     { type: 'finish', finish: 'stop' },
 *   ];
 * };
 *
 * // Repeats the question, louder.
 * const parrot: Model = {
 *   name: 'parrot',
 *   unsupported: ['temperature', 'outputSchema'],
 *   stream$: (request) => defer(() => answerTo(request)),
 * };
 *
 * const reply = await createAgent({ model: parrot }).call('Good morning');
 * console.log(reply.text, reply.usage.inputTokens);
 * ```
 *
 * ```text
 * Good! morning!  12
 * ```
 */
export interface Model {
  /** The name in events and errors. */
  readonly name: string;
  /** Unsupported options, dropped with a `warning`; instead of `outputSchema`, the model gets a tool to answer with. */
  readonly unsupported?: readonly (keyof RequestOptions)[];
  /** Whether it enforces `context.timeouts` itself. Default: the caller does. */
  readonly keepsTime?: boolean;
  /** Whether it describes tools in its prompt, as `textTools` does. */
  readonly toolsInPrompt?: boolean;
  /** Sends a request. Cold: subscribing sends it, unsubscribing aborts it synchronously. */
  stream$(request: ModelRequest, context: ModelContext): Observable<ModelChunk>;
}
