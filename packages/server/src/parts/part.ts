import type {
  AudioBlock,
  EventOf,
  FileBlock,
  ImageBlock,
  MillraceError,
  Reply,
  Usage,
} from '@millrace/core';

/** Who a part comes from: a call. */
export interface Speaker {
  readonly callId: string;
  /** The call above, where this is a sub-agent. */
  readonly parentId?: string;
  readonly sessionId?: string;
  /** The names of the agents, from the outermost to the one that speaks. */
  readonly agent: readonly string[];
  /** Of a sub-agent, where it is known: the tool call that it works for, under the id that its reader knows. */
  readonly toolCallId?: string;
}

/** A picture, a recording or a document. */
export type MediaBlock = ImageBlock | AudioBlock | FileBlock;

/** What a reader may be told of that is no part of a message. */
export type Notice =
  | {
      readonly name: 'retry';
      readonly attempt: number;
      readonly attempts: number;
      readonly waitMs: number;
      readonly error: MillraceError;
    }
  | { readonly name: 'fallback'; readonly error: MillraceError }
  | {
      readonly name: 'sources';
      readonly sources: readonly SourceData[];
    }
  | { readonly name: 'queued'; readonly ahead: number }
  | { readonly name: 'waiting'; readonly waitedMs: number }
  | { readonly name: 'state'; readonly of: string; readonly state: unknown }
  | { readonly name: 'steered'; readonly messageId: string; readonly text: string }
  | ({
      readonly name: 'approvalRequested';
      /** What decides on it, as soon as there is one. */
      readonly ticket?: Ticket;
    } & ToolUseRef)
  | ({ readonly name: 'approvalDecided'; readonly approved: boolean } & ToolUseRef)
  | ({ readonly name: 'suspended'; readonly request: unknown } & ToolUseRef)
  | ({ readonly name: 'repaired' } & ToolUseRef);

/** What an answer may cite. */
export interface SourceData {
  /** The number that the model cites it by. */
  readonly number: number;
  readonly source: string;
  readonly title?: string;
}

/** Which use of a tool something is about. */
export interface ToolUseRef {
  /** Under the id that its reader knows. */
  readonly toolCallId: string;
  readonly toolName: string;
  /** Under the id that its call knows. */
  readonly toolUseId: string;
}

/** What a reader decides on an approval with. */
export interface Ticket {
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** How a call came to its end. */
export type CallEnd =
  | { readonly status: 'replied'; readonly reply: Reply }
  | { readonly status: 'failed'; readonly error: MillraceError }
  /** Without an error, nobody has said how: the stream of its events has ended before it. */
  | { readonly status: 'aborted'; readonly error?: MillraceError };

type PartPayload =
  | { readonly type: 'callStart' }
  | { readonly type: 'callEnd'; readonly end: CallEnd; readonly usage: Usage }
  | { readonly type: 'stepStart' | 'stepEnd'; readonly step: string }
  | ({ readonly type: 'blockStart' | 'blockEnd' } & BlockOf)
  | ({ readonly type: 'blockDelta'; readonly delta: string } & BlockOf)
  | {
      readonly type: 'toolStart';
      readonly id: string;
      readonly name: string;
      readonly messageId: string;
    }
  | { readonly type: 'toolDelta'; readonly id: string; readonly delta: string }
  | {
      /** `toolInput` comes once, when the arguments are whole; `toolEdit` when they are others since. */
      readonly type: 'toolInput' | 'toolEdit';
      readonly id: string;
      readonly name: string;
      readonly input: unknown;
      /** The arguments are not those that the deltas say. */
      readonly isEdited: boolean;
    }
  | { readonly type: 'toolProgress'; readonly id: string; readonly value: unknown }
  | {
      /** Its progress is void: it is suspended, and has no output. */
      readonly type: 'toolReset';
      readonly id: string;
      readonly name: string;
      readonly input: unknown;
    }
  | {
      readonly type: 'toolEnd';
      readonly id: string;
      /** The arguments had come to their end. */
      readonly isWhole: boolean;
      readonly outcome: ToolOutcome;
    }
  | { readonly type: 'media'; readonly messageId: string; readonly block: MediaBlock }
  | { readonly type: 'voided'; readonly messageId: string }
  | { readonly type: 'notice'; readonly notice: Notice };

/** A stretch of text or thinking, without anything in between. */
interface BlockOf {
  readonly kind: 'text' | 'thinking';
  readonly id: string;
  readonly messageId: string;
}

/** What became of a use of a tool. */
export type ToolOutcome =
  | { readonly status: 'done' | 'failed' | 'denied'; readonly event: EventOf<'postActing'> }
  | { readonly status: 'notRun' };

/**
 * One thing that a reader of calls is shown, in no protocol's words. Whatever starts also ends, and before its call
 * does, but for tools that a call suspends; ids are told apart over all calls.
 */
export type Part = PartPayload & { readonly by: Speaker };

/** The part of one type. */
export type PartOf<Type extends Part['type']> = Extract<Part, { readonly type: Type }>;
