import type {
  JsonSchema,
  AgentEvent,
  AudioBlock,
  Citation,
  EventOf,
  FileBlock,
  ImageBlock,
  MediaSource,
  MillraceError,
  Reply,
  ResultSource,
  Usage,
} from 'millrace';
import type { OperatorFunction } from 'rxjs';

/** The call that a part comes from. */
export interface CallRef {
  readonly callId: string;
  /** The parent call of a sub-agent. */
  readonly parentId?: string;
  readonly sessionId?: string;
  /** The names of the agents, from the outermost one to the agent of this call. */
  readonly agent: readonly string[];
  /** The tool call that runs this sub-agent, if known, by its id in the client. */
  readonly toolCallId?: string;
}

/** Media that a client can show. Those that the vendor stores under an id are not. */
export type MediaBlock = (ImageBlock | AudioBlock | FileBlock) & {
  readonly source: Exclude<MediaSource, { readonly kind: 'id' }>;
};

/** Information for the client beside the messages. */
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
      /** The token that decides on it, once it exists. */
      readonly approvalToken?: ApprovalToken;
      /** The schema of its arguments, if the model was offered the tool. */
      readonly inputSchema?: JsonSchema;
    } & ToolCallRef)
  | ({
      readonly name: 'approvalDecided';
      readonly approved: boolean;
      /** Why it was denied, if the approver has given a reason. */
      readonly reason?: string;
      /** A person has decided. */
      readonly by?: 'user';
      /** The arguments that were asked about, if others were approved. */
      readonly asked?: unknown;
    } & ToolCallRef)
  /** The tool call was running when its process ended: it is unknown whether it has had its effect. */
  | ({ readonly name: 'uncertain'; readonly inputSchema?: JsonSchema } & ToolCallRef)
  | ({
      readonly name: 'suspended';
      readonly request: unknown;
      /** Only for a `client` it is an invitation to bring the result. */
      readonly from: ResultSource;
    } & ToolCallRef)
  | ({ readonly name: 'repaired' } & ToolCallRef);

/** A source that an answer may cite. */
export interface SourceData {
  /** The number by which the model cites it. */
  readonly number: number;
  readonly source: string;
  readonly title?: string;
}

export interface ToolCallRef {
  /** Its id in the client. */
  readonly toolCallId: string;
  readonly toolName: string;
  /** Its id within the agent call. */
  readonly localId: string;
}

export interface ApprovalToken {
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  readonly mayEdit?: true;
}

/** An approval that a stream ends with. */
export interface AskedApproval extends ToolCallRef {
  /** The id of the question in the client. */
  readonly questionId: string;
  readonly by: CallRef;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

export type CallEnd =
  | {
      readonly status: 'replied';
      readonly reply: Reply;
      /** The ids in the client of the tool calls whose results it brings. */
      readonly pending: readonly string[];
    }
  | { readonly status: 'failed'; readonly error: MillraceError }
  /** Without an error if the stream of events ended before the call did. */
  | { readonly status: 'aborted'; readonly error?: MillraceError };

type PartPayload =
  | { readonly type: 'callStart' }
  | { readonly type: 'callEnd'; readonly end: CallEnd; readonly usage: Usage }
  /** Ends the stream, but not the call: it continues once the client has answered. */
  | { readonly type: 'asks'; readonly asked: readonly AskedApproval[] }
  | {
      readonly type: 'stepStart' | 'stepEnd';
      readonly step: string;
      /** The client has the step from an earlier stream. */
      readonly isContinued?: true;
    }
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
      /** `toolInput` comes once, when the arguments are complete; `toolEdit` whenever they change after that. */
      readonly type: 'toolInput' | 'toolEdit';
      readonly id: string;
      readonly name: string;
      readonly input: unknown;
      /** Whether the arguments differ from the streamed deltas. */
      readonly isEdited: boolean;
    }
  | { readonly type: 'toolProgress'; readonly id: string; readonly value: unknown }
  | {
      /** Discards its progress: the tool is suspended and has no output. */
      readonly type: 'toolReset';
      readonly id: string;
      readonly name: string;
      readonly input: unknown;
    }
  | {
      readonly type: 'toolEnd';
      readonly id: string;
      /** Whether the arguments were complete. */
      readonly isWhole: boolean;
      readonly outcome: ToolOutcome;
    }
  | { readonly type: 'media'; readonly messageId: string; readonly block: MediaBlock }
  | {
      /** A source of the text of the message so far. */
      readonly type: 'source';
      readonly id: string;
      readonly messageId: string;
      readonly citation: Citation;
    }
  | { readonly type: 'voided'; readonly messageId: string }
  | { readonly type: 'notice'; readonly notice: Notice };

/** An uninterrupted block of text or thinking. */
interface BlockOf {
  readonly kind: 'text' | 'thinking';
  readonly id: string;
  readonly messageId: string;
}

/** How a tool call ended. */
export type ToolOutcome =
  | { readonly status: 'done' | 'failed' | 'denied'; readonly event: EventOf<'postActing'> }
  | { readonly status: 'notRun' };

/**
 * A protocol-neutral item to show to a client. Everything that starts also ends, before the end of its call, except for
 * suspended tools. Ids are unique across calls.
 */
export type Part = PartPayload & { readonly by: CallRef };

export type PartOf<Type extends Part['type']> = Extract<Part, { readonly type: Type }>;

/** Ends a stream when its call waits for approvals. */
export interface Asking {
  /** The ids of the tool calls that the request of the client has answered. */
  readonly answered: readonly string[];
  readonly through: (
    parts: OperatorFunction<AgentEvent, Part>,
  ) => OperatorFunction<AgentEvent, Part>;
}
