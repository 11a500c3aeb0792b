import type { Fields } from './fields.js';

/** A message of a conversation, as the page shows it. */
export interface UiMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly parts: readonly UiPart[];
  /** Shown until the next content: the server retries, waits or has queued the call. */
  readonly notice?: string;
  /** The usage of its earlier calls, while another one continues it. */
  readonly spent?: AnswerUsage;
  /** Set when the answer has ended. */
  readonly end?: AnswerEnd;
}

/** How an answer has ended. */
export interface AnswerEnd {
  /** Why, such as `answer`, `interrupted` or `suspended`; absent if it failed. */
  readonly reason?: string;
  readonly error?: {
    readonly text: string;
    readonly retryable: boolean;
    /** Its code, such as `invalidRequest`. */
    readonly code?: string;
  };
  readonly usage?: AnswerUsage;
}

/** The usage of an answer, in all its calls. */
export interface AnswerUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cost?: {
    readonly currency: string;
    readonly amount: number;
    readonly isPartial: boolean;
  };
}

/** A piece of a message. `messageId` links it to the message of the model, which may be discarded. */
export type UiPart =
  | TextPart
  | ToolPart
  | AgentPart
  | FilePart
  | { readonly type: 'step-start' }
  | { readonly type: 'steered'; readonly text: string }
  | { readonly type: 'approval'; readonly data: Approval }
  | { readonly type: 'suspended'; readonly data: Suspended }
  | { readonly type: 'uncertain'; readonly data: Uncertain }
  | { readonly type: 'sources'; readonly sources: readonly Source[] }
  | { readonly type: 'data'; readonly name: string; readonly id?: string; readonly data: unknown };

export interface FilePart {
  readonly type: 'file';
  readonly url: string;
  readonly mediaType: string;
  readonly filename?: string;
  readonly messageId?: string;
}

/** A part, and its place. */
export interface PartProps<Part extends UiPart = UiPart> {
  readonly part: Part;
  readonly message: UiMessage;
  readonly isRunning: boolean;
}

export interface TextPart {
  readonly type: 'text' | 'reasoning';
  readonly id?: string;
  readonly text: string;
  readonly isOpen: boolean;
  readonly messageId?: string;
}

export interface ToolPart {
  readonly type: 'tool';
  readonly toolCallId: string;
  readonly toolName: string;
  readonly state: 'input' | 'running' | 'done' | 'failed' | 'denied' | 'cancelled' | 'stopped';
  /** The arguments while they arrive, as JSON that is not complete. */
  readonly inputText?: string;
  readonly input?: unknown;
  /** The result, or the progress of a tool that is running. */
  readonly output?: unknown;
  readonly errorText?: string;
  readonly messageId?: string;
}

export interface AgentPart {
  readonly type: 'agent';
  readonly id: string;
  readonly names: readonly string[];
  readonly toolCallId?: string;
  readonly status: string;
  /** Its reply, when it has ended. */
  readonly text?: string;
  readonly progress: readonly AgentProgress[];
}

/** A message of a sub-agent so far, or one of its tool calls. */
export interface AgentProgress {
  readonly kind: 'text' | 'thinking' | 'tool';
  readonly id: string;
  readonly text: string;
  readonly status?: string;
}

export interface Approval {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly status: string;
  readonly token?: string;
  readonly expiresAt?: number | undefined;
  /** The server takes an edited input. */
  readonly mayEdit: boolean;
  /** The schema of its input. */
  readonly inputSchema?: Fields | undefined;
  /** Why it was denied: the words of a person, or of the queue. */
  readonly reason?: string;
  /** The input that was asked about, if another one was approved. */
  readonly asked?: unknown;
}

export interface Suspended {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly localId: string;
  readonly request?: unknown;
  /** The user's answer, until those for the others have come, too. */
  readonly given?: ToolOutcome | undefined;
}

/** The result of a suspended tool call, or the reason for its failure. */
export type ToolOutcome =
  | { readonly type: 'result'; readonly toolCallId: string; readonly output: unknown }
  | { readonly type: 'failure'; readonly toolCallId: string; readonly errorText: string };

/** A tool call that was running when its server stopped. */
export interface Uncertain {
  readonly toolCallId: string;
  readonly toolName: string;
  /** The user's word. Those for all uncertain tool calls are sent together. */
  readonly outcome?: SettledAs | undefined;
  /** Whether the server gets it now, with the others. */
  readonly isSent?: boolean;
  /** The schema of its input. */
  readonly inputSchema?: Fields | undefined;
}

/** The outcome, by the user's word, of a tool call that was running when the server stopped. */
export type SettledAs = 'again' | 'happened' | 'failed';

export interface Source {
  readonly number?: number;
  readonly source: string;
  readonly title?: string;
}

export const isToolCall =
  (toolCallId: unknown) =>
  (part: UiPart): part is ToolPart =>
    part.type === 'tool' && part.toolCallId === toolCallId;

export const isQuestion = ({ role }: UiMessage): boolean => role === 'user';

export const filesIn = ({ parts }: UiMessage): readonly FilePart[] =>
  parts.filter((part) => part.type === 'file');

/** The text of a message, without thinking. */
export const plainTextOf = ({ parts }: UiMessage): string =>
  parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n\n');

/** The suspended tool calls of an answer that wait for a result: those of its last step with any. */
export const waitingIn = ({ parts }: UiMessage): readonly Suspended[] => {
  const last = parts.findLastIndex(({ type }) => type === 'suspended');
  const from = parts.slice(0, last + 1).findLastIndex(({ type }) => type === 'step-start');
  return parts.slice(from + 1).flatMap((part) => {
    if (part.type !== 'suspended') return [];
    const tool = parts.find(isToolCall(part.data.toolCallId));
    return tool === undefined || tool.state === 'running' ? [part.data] : [];
  });
};

/** The uncertain tool calls of an answer that have no result yet. */
export const uncertainIn = ({ parts }: UiMessage): readonly Uncertain[] =>
  parts.flatMap((part) => {
    if (part.type !== 'uncertain') return [];
    return parts.find(isToolCall(part.data.toolCallId))?.state === 'running' ? [part.data] : [];
  });

/** Whether an uncertain tool call has a result, and the page does not know the user's word for it. */
export const lacksWord = ({ parts }: UiMessage): boolean =>
  parts.some(
    (part) =>
      part.type === 'uncertain' &&
      part.data.outcome === undefined &&
      hasResult(parts.find(isToolCall(part.data.toolCallId))),
  );

/**
 * Whether a tool call was denied without the reason, and it was a queue that has asked: the stream has the reasons of people only, and
 * the facts also those of the queue.
 */
export const lacksReason = ({ parts }: UiMessage): boolean =>
  parts.some(
    (part) =>
      part.type === 'approval' &&
      part.data.status === 'denied' &&
      part.data.reason === undefined &&
      part.data.expiresAt !== undefined,
  );

const hasResult = (tool: ToolPart | undefined): boolean =>
  tool?.state === 'done' || tool?.state === 'failed';

/** The tool calls of an answer that wait for an approval. */
export const approvalsIn = ({ parts }: UiMessage): readonly Approval[] =>
  parts.flatMap((part) => {
    if (part.type !== 'approval' || part.data.status !== 'requested') return [];
    const tool = parts.find(isToolCall(part.data.toolCallId));
    return tool === undefined || tool.state === 'running' ? [part.data] : [];
  });

export const toolsIn = ({ parts }: UiMessage): readonly ToolPart[] =>
  parts.flatMap((part) => (part.type === 'tool' ? [part] : []));

/** Whether a tool call has ended: with a result, an error or a denial. */
export const isOver = ({ state }: ToolPart): boolean => state !== 'input' && state !== 'running';
