import type { CitationData } from '../parts/source.js';
import type { JsonSchema, Reply, Usage } from 'millrace';
import type { ShownCost } from '../parts/shown-cost.js';
import type { SourceData } from '../parts/part.js';

/** The major version of the AI SDK in the client. */
export type AiSdkVersion = 6 | 7;

/** Links a part of the UI message to the Millrace message that it belongs to. */
// A type alias, because the SDK requires an index signature, which interfaces lack.
// eslint-disable-next-line @typescript-eslint/consistent-type-definitions
export type PartMetadata = { readonly millrace: { readonly messageId: string } };

/** The metadata that the `finish` chunk adds to the message. */
export interface ReplyMetadata {
  /** Why the loop ended; absent if it failed. */
  readonly reason?: Reply['reason'];
  readonly iterations?: number;
  /** The usage of the whole run, including sub-agents. */
  readonly usage: Usage;
  /** The cost of the whole run, with the layer `cost`. */
  readonly cost?: ShownCost;
}

/** The call of a sub-agent: the data of `data-agent`, sent when it starts and again when it ends. */
export interface AgentData {
  /** The names of the agents, from the outermost one to this sub-agent. */
  readonly agent: readonly string[];
  /** The tool call that runs the sub-agent. */
  readonly toolCallId?: string;
  readonly status: 'running' | 'replied' | 'failed' | 'aborted';
  readonly reason?: Reply['reason'];
  /** The text of its reply, or of its error. */
  readonly text?: string;
}

/** The progress of a sub-agent: the data of `data-agent-progress`, which is transient. */
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

/** A tool call that needs approval: the data of `data-approval`, sent again on every update. */
export type ApprovalData = ToolCallData &
  (
    | {
        readonly status: 'requested';
        /** With the option `approvals`: the token that decides on it, once. */
        readonly token?: string;
        /** When the token expires, in milliseconds since the epoch. */
        readonly expiresAt?: number;
        /** The client may edit the input. */
        readonly mayEdit?: true;
        /** The schema of the input, as the model has it. */
        readonly inputSchema?: JsonSchema;
      }
    | {
        readonly status: 'approved' | 'denied';
        /** Why it was denied, as `onDenial` shows it. */
        readonly reason?: string;
        /** The input that was asked about, if another one was approved. */
        readonly asked?: unknown;
      }
  );

/** The tool call that a data part is about. */
export interface ToolCallData {
  readonly toolCallId: string;
  readonly toolName: string;
  /** The id of the tool call within its agent call. */
  readonly localId: string;
}

/** The data parts of Millrace by name: the second type argument of the SDK's `UIMessage`. */
export interface MillraceData {
  /** The structured output of the reply. */
  readonly output: unknown;
  /** Discards the parts with this `messageId` in their metadata. Version 6 only. */
  readonly discarded: { readonly messageId: string };
  /** A message that was steered into the running call. Version 6 only. */
  readonly steered: { readonly messageId: string; readonly text: string };
  readonly agent: AgentData;
  readonly 'agent-progress': AgentProgress;
  readonly approval: ApprovalData;
  /** A tool call that waits for its result, with the request of the tool. */
  readonly suspended: ToolCallData & { readonly request: unknown };
  /** A tool call that was running when its process ended: it is unknown whether it has had its effect. */
  readonly uncertain: ToolCallData & { readonly inputSchema?: JsonSchema };
  /** Malformed JSON arguments were repaired. Transient. */
  readonly repaired: ToolCallData;
  /** A request to the model is retried after `waitMs` milliseconds. Transient. */
  readonly retry: {
    readonly attempt: number;
    readonly attempts: number;
    readonly waitMs: number;
    readonly code: string;
  };
  /** The sources that the answer may cite by number. */
  readonly sources: readonly SourceData[];
  /** The current value of a state of the call, such as its `plan`. A later part of the same name replaces it. */
  readonly state: { readonly name: string; readonly state: unknown };
  /** The call is queued with `ahead` calls before it. Transient. */
  readonly queued: { readonly ahead: number };
  /** The model has not sent anything for `waitedMs` milliseconds. Transient. */
  readonly waiting: { readonly waitedMs: number };
  /** Another model takes over after an error with this code. Transient. */
  readonly fallback: { readonly code: string };
}

/** A chunk with a data part of Millrace. */
export type MillraceDataChunk = {
  readonly [Name in keyof MillraceData]: {
    readonly type: `data-${Name}`;
    readonly id?: string;
    readonly data: MillraceData[Name];
    /** Passed to `onData`, and not kept in the message. */
    readonly transient?: boolean;
  };
}[keyof MillraceData];

/** A source of the answer. The metadata has the citation, such as the cited words and their place. */
export type SourceChunk =
  | {
      readonly type: 'source-url';
      readonly sourceId: string;
      readonly url: string;
      readonly title?: string;
      readonly providerMetadata: SourceMetadata;
    }
  | {
      readonly type: 'source-document';
      readonly sourceId: string;
      readonly mediaType: string;
      readonly title: string;
      readonly providerMetadata: SourceMetadata;
    };

// As `PartMetadata`.
// eslint-disable-next-line @typescript-eslint/consistent-type-definitions
type SourceMetadata = {
  readonly millrace: PartMetadata['millrace'] & { readonly citation: CitationData };
};

/** Chunks for every version of the AI SDK. */
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
      /** Whether it is intermediate output of a running tool. */
      readonly preliminary?: boolean;
    }
  | {
      readonly type: 'tool-output-error';
      readonly toolCallId: string;
      readonly errorText: string;
      /** Version 6 only: the tool call was denied and did not run. */
      readonly providerMetadata?: { readonly millrace: { readonly denied: true } };
    }
  | {
      readonly type: 'tool-approval-request';
      readonly approvalId: string;
      readonly toolCallId: string;
    }
  | { readonly type: 'tool-output-denied'; readonly toolCallId: string }
  | {
      readonly type: 'file';
      readonly url: string;
      readonly mediaType: string;
      readonly providerMetadata: PartMetadata;
    }
  | SourceChunk
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
      readonly messageMetadata?: ReplyMetadata;
    };

/** Chunks for version 7 only. */
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
  | {
      readonly type: 'finish';
      readonly finishReason: 'interrupted';
      readonly messageMetadata: ReplyMetadata;
    };

/** A chunk of an AI SDK UI message stream (protocol v1) for that version. */
export type UiMessageChunk<Target extends AiSdkVersion = 6> =
  CommonUiMessageChunk | (Target extends 7 ? UiMessageChunk7 : never);
