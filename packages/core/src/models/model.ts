import type { Observable, SchedulerLike } from 'rxjs';
import type { Demand } from '../flow/demand.js';
import type { ContentBlock, Finish, Message, ToolUseBlock } from '../values/message.js';
import type { MillraceError } from '../values/errors.js';
import type { JsonSchema } from '../values/schema.js';
import type { Usage } from '../values/usage.js';

/** What a model is told of a tool. */
export interface ToolDeclaration {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
}

/** Which tools the model may or must ask for: any or none, none at all, at least one, or this one. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string };

/** Everything a request says beside its messages. An absent option is left to the vendor's default. */
export interface RequestOptions {
  readonly system?: string;
  readonly tools?: readonly ToolDeclaration[];
  readonly toolChoice?: ToolChoice;
  readonly temperature?: number;
  /** Tokens that the answer may have. */
  readonly maxTokens?: number;
  readonly stopSequences?: readonly string[];
  /** The final answer must be JSON of this schema, and nothing else. */
  readonly outputSchema?: JsonSchema;
}

/** What a model is asked. */
export interface ModelRequest extends RequestOptions {
  readonly messages: readonly Message[];
}

/**
 * One chunk of an answer, in the order in which the model produced it.
 *
 * - `text` and `thinking` carry deltas; a `signature` ends its thinking block.
 * - `toolUse` chunks belong together by `index` and `id`; without either, a `name` starts the next one. `json` is a delta of
 *   the arguments, `input` all of them.
 * - `usage` is cumulative for the request: a later chunk replaces an earlier one field by field.
 * - `restart` voids everything before it: the request was sent again.
 * - `malformed` reports text that could not be read as an action, with feedback for the model.
 * - `finish` is the last chunk. A stream without it was cut off.
 */
export type ModelChunk =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'thinking';
      readonly text: string;
      readonly signature?: string;
      readonly redacted?: boolean;
    }
  | {
      readonly type: 'toolUse';
      readonly index?: number;
      readonly id?: string;
      readonly name?: string;
      readonly json?: string;
      readonly input?: unknown;
      /** It is not to be run, and this is what the model is told instead. */
      readonly refusal?: string;
    }
  | { readonly type: 'block'; readonly block: ContentBlock }
  | { readonly type: 'usage'; readonly usage: Partial<Usage> }
  | { readonly type: 'restart'; readonly why: string }
  | ({ readonly type: 'malformed' } & Malformed)
  | { readonly type: 'finish'; readonly finish: Finish | 'pause' };

/** A text that could not be read as an action. */
export interface Malformed {
  /** What the model should be told. */
  readonly feedback: string;
  /** The same in a few words, for logs and errors. Default: the first line of the feedback. */
  readonly why?: string;
  /** All that it wrote, where the chunks do not show it. */
  readonly written?: string;
  /** Whether the text shown is accepted as the answer after the last correction. Default: if `written` is missing. */
  readonly isAnswer?: boolean;
  /** It has thought, and neither asked for a tool nor answered. */
  readonly isThought?: boolean;
}

/** What a model or a wrapper around it may announce. */
export type ModelReport =
  | {
      readonly type: 'modelRetry';
      /** The name of the model. */
      readonly model: string;
      /** The attempt that failed, from 1. */
      readonly attempt: number;
      /** How many there may be. */
      readonly attempts: number;
      /** Milliseconds until the next one. */
      readonly waitMs: number;
      readonly error: MillraceError;
    }
  | {
      readonly type: 'modelWaiting';
      readonly model: string;
      /** Milliseconds without any content of the answer. Reported once for each attempt, after 10 seconds. */
      readonly waitedMs: number;
    }
  | {
      readonly type: 'modelFallback';
      readonly from: string;
      readonly to: string;
      readonly error: MillraceError;
    }
  | {
      readonly type: 'repaired';
      /** What the model wrote. */
      readonly before: string;
      /** What it is taken for: JSON. */
      readonly after: string;
      /** Whose arguments they are, where it was not the whole action. */
      readonly toolUse?: ToolUseBlock;
    }
  | {
      readonly type: 'queued';
      /** What it waits for: a slot for its request, what a minute allows, or a slot for the whole call. */
      readonly why: 'concurrency' | 'rate' | 'calls';
      /** How many wait before it. */
      readonly ahead: number;
    }
  | { readonly type: 'warning'; readonly message: string };

/** What a call lends to a model for one request. Wrappers pass it on. */
export interface ModelContext {
  /** While it is closed, a model reads nothing more from its socket. */
  readonly demand: Demand;
  /** Every wait runs on it. */
  readonly scheduler: SchedulerLike;
  /** Announces a retry, a fallback or a warning as an event of the call. */
  readonly report: (event: ModelReport) => void;
  /** The call that asks: the messages it was asked with have its id. */
  readonly callId?: string;
  /** Where in the run this is: `callId/iteration`. The same on a resumed run. */
  readonly stepId: string;
  /** Hears the messages that are sent in the place of the request's, if a wrapper further in shortens it. */
  readonly shortened?: (messages: readonly Message[]) => void;
  /** A number in [0, 1), the same sequence for the same step. */
  readonly random: () => number;
  /** Time-outs of the caller or of an outer wrapper. They override those of inner wrappers. */
  readonly timeouts?: ModelTimeouts;
  /** Whether an outer wrapper retries: inner ones do not then. */
  readonly isRetried?: boolean;
  /** What is left to the whole call of requests that are sent again. Without it, nobody counts. */
  readonly retryBudget?: RetryBudget;
}

/** How long a model may be silent, in milliseconds, while demand is open. What is absent may last for ever. */
export interface ModelTimeouts {
  /** From the request to the first content: text, thinking or a tool use. A sign of life is no content. */
  readonly firstChunkMs?: number;
  /** From one piece of content to the next. */
  readonly chunkMs?: number;
}

/** Requests that one call may still send again. */
export interface RetryBudget {
  /** Takes one of them; false when none is left. */
  take(): boolean;
}

/** A language model, or whatever stands for one. */
export interface Model {
  /** What events and errors call it. */
  readonly name: string;
  /** Options that it does not support: they are dropped with a `warning`. For `outputSchema`, the model gets a tool to answer with. */
  readonly unsupported?: readonly (keyof RequestOptions)[];
  /** Whether it enforces `context.timeouts` itself. For other models the caller does. */
  readonly keepsTime?: boolean;
  /** Whether it describes tools in its prompt, as `textTools` does. */
  readonly toolsInPrompt?: boolean;
  /** Answers a request. Cold: subscribing sends it, unsubscribing aborts it in the same tick. */
  stream$(request: ModelRequest, context: ModelContext): Observable<ModelChunk>;
}
