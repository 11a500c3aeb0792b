import type { EndReason, Usage } from '@millrace/core';
import type { SourceData } from '../parts/part.js';

/** The major version of the AI SDK that reads the stream. */
export type AiSdkVersion = 6 | 7;

/** What a part of the message carries, so that it can be found again: which of Millrace's messages it belongs to. */
// A type, because the SDK has an index signature here, and an interface never has one.
// eslint-disable-next-line @typescript-eslint/consistent-type-definitions
export type PartMetadata = { readonly millrace: { readonly messageId: string } };

/** What the `finish` chunk leaves in the message's metadata. */
export interface ReplyMetadata {
  /** Why the loop ended; absent where it failed. */
  readonly reason?: EndReason;
  readonly iterations?: number;
  /** Of the whole run, sub-agents included. */
  readonly usage: Usage;
}

/** What is known of a sub-agent's call: the data of `data-agent`, told when it begins and again when it ends. */
export interface AgentData {
  /** The names of the agents, from the outermost to the one that speaks. */
  readonly agent: readonly string[];
  /** The use of the tool that it works for. */
  readonly toolCallId?: string;
  readonly status: 'running' | 'replied' | 'failed' | 'aborted';
  readonly reason?: EndReason;
  /** The text of its reply, or what went wrong. */
  readonly text?: string;
}

/** What happens in a sub-agent: the data of `data-agent-progress`, not kept in the message. */
export type AgentProgress =
  | {
      readonly kind: 'text' | 'thinking';
      /** The call of the sub-agent: the id of its `data-agent`. */
      readonly callId: string;
      readonly messageId: string;
      readonly delta: string;
    }
  | {
      readonly kind: 'tool';
      readonly callId: string;
      readonly toolCallId: string;
      readonly toolName: string;
      readonly status: 'running';
    }
  | {
      readonly kind: 'tool';
      readonly callId: string;
      readonly toolCallId: string;
      readonly status: 'done' | 'failed' | 'denied' | 'notRun';
    }
  | { readonly kind: 'discarded'; readonly callId: string; readonly messageId: string };

/** A use of a tool that somebody is to approve: the data of `data-approval`, told anew whenever more is known of it. */
export type ApprovalData = ToolUseData &
  (
    | {
        readonly status: 'requested';
        /** With the option `approvals`: what decides on it, once. */
        readonly token?: string;
        /** Until when, in milliseconds since the epoch. */
        readonly expiresAt?: number;
      }
    | { readonly status: 'approved' | 'denied' }
  );

/** Which use of a tool a data part is about. */
export interface ToolUseData {
  readonly toolCallId: string;
  readonly toolName: string;
  /** What the call itself calls it. */
  readonly toolUseId: string;
}

/** The data parts that a Millrace agent makes, by name: the second argument of the SDK's `UIMessage`. */
export interface MillraceData {
  /** The structured output of the reply. */
  readonly output: unknown;
  /** Parts with this `messageId` in their metadata are void. For readers of version 6. */
  readonly discarded: { readonly messageId: string };
  /** What somebody said to the running call. For readers of version 6. */
  readonly steered: { readonly messageId: string; readonly text: string };
  readonly agent: AgentData;
  readonly 'agent-progress': AgentProgress;
  readonly approval: ApprovalData;
  /** The result of a tool is still to come, and this is what it has asked for. */
  readonly suspended: ToolUseData & { readonly request: unknown };
  /** Arguments that were no JSON are read as what they can only have meant. Not kept in the message. */
  readonly repaired: ToolUseData;
  /** A request is sent again, in so many milliseconds. Not kept in the message. */
  readonly retry: {
    readonly attempt: number;
    readonly attempts: number;
    readonly waitMs: number;
    readonly code: string;
  };
  /** What the answer may cite, by its numbers. */
  readonly sources: readonly SourceData[];
  /** What has changed while the call runs, such as its `plan`, as it is now. A later part of the same name takes its place. */
  readonly state: { readonly name: string; readonly state: unknown };
  /** The call waits for its turn, behind so many others. Not kept in the message. */
  readonly queued: { readonly ahead: number };
  /** A model has not begun to answer for so long, in milliseconds. Not kept in the message. */
  readonly waiting: { readonly waitedMs: number };
  /** Another model goes on. Not kept in the message. */
  readonly fallback: { readonly code: string };
}

/** A data part. */
export type MillraceDataChunk = {
  readonly [Name in keyof MillraceData]: {
    readonly type: `data-${Name}`;
    readonly id?: string;
    readonly data: MillraceData[Name];
    /** It is shown to `onData`, and not kept in the message. */
    readonly transient?: boolean;
  };
}[keyof MillraceData];

/** Chunks that every version reads. */
export type CommonUiMessageChunk =
  | { readonly type: 'start'; readonly messageId: string }
  | { readonly type: 'start-step' | 'finish-step' }
  | {
      readonly type: 'text-start' | 'reasoning-start';
      readonly id: string;
      readonly providerMetadata: PartMetadata;
    }
  | { readonly type: 'text-delta' | 'reasoning-delta'; readonly id: string; readonly delta: string }
  | { readonly type: 'text-end' | 'reasoning-end'; readonly id: string }
  | {
      readonly type: 'tool-input-start';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly providerMetadata: PartMetadata;
    }
  | {
      readonly type: 'tool-input-delta';
      readonly toolCallId: string;
      readonly inputTextDelta: string;
    }
  | {
      readonly type: 'tool-input-available';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: unknown;
    }
  | {
      readonly type: 'tool-output-available';
      readonly toolCallId: string;
      readonly output: unknown;
      /** It is what the tool has so far. */
      readonly preliminary?: boolean;
    }
  | {
      readonly type: 'tool-output-error';
      readonly toolCallId: string;
      readonly errorText: string;
      /** For readers of version 6: the use was not allowed, and has not been run. */
      readonly providerMetadata?: { readonly millrace: { readonly denied: true } };
    }
  | {
      readonly type: 'file';
      readonly url: string;
      readonly mediaType: string;
      readonly providerMetadata: PartMetadata;
    }
  | MillraceDataChunk
  | {
      readonly type: 'message-metadata';
      readonly messageMetadata: {
        readonly error: { readonly code: string; readonly retryable: boolean };
      };
    }
  | { readonly type: 'error'; readonly errorText: string }
  | { readonly type: 'abort'; readonly reason?: string }
  | {
      readonly type: 'finish';
      readonly finishReason:
        'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';
      readonly messageMetadata: ReplyMetadata;
    };

/** Chunks that version 7 reads, and no earlier one. */
export type UiMessageChunk7 =
  | { readonly type: 'reset-step' }
  | {
      readonly type: 'steering-message';
      readonly id: string;
      readonly parts: { readonly type: 'text'; readonly text: string }[];
    }
  | {
      readonly type: 'tool-approval-request';
      readonly approvalId: string;
      readonly toolCallId: string;
      readonly isAutomatic: true;
    }
  | {
      readonly type: 'tool-approval-response';
      readonly approvalId: string;
      readonly approved: false;
    }
  | { readonly type: 'tool-output-denied'; readonly toolCallId: string }
  | {
      readonly type: 'finish';
      readonly finishReason: 'interrupted';
      readonly messageMetadata: ReplyMetadata;
    };

/** A chunk of an AI SDK UI message stream, protocol v1, as a reader of that version takes it. */
export type UiMessageChunk<Target extends AiSdkVersion = 6> =
  CommonUiMessageChunk | (Target extends 7 ? UiMessageChunk7 : never);
