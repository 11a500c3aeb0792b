import {
  type AgentEvent,
  type ChunkOf,
  type EventOf,
  textOf,
  type ToolDeclaration,
  toolCallsOf,
} from 'millrace';
import type { RetrievedPassage } from 'millrace/retrieval';
import type { Notice, Part, SourceData, CallRef } from './part.js';
import type { ShownMessage } from './shown-message.js';
import { completed, createShownMessages, type ShownMessages } from './shown-messages.js';
import { createToolParts } from './tool-parts.js';

/** Converts the events of one call to parts. */
export interface CallParts {
  readonly by: CallRef;
  take(event: AgentEvent): readonly Part[];
  /** Ends everything that is open. */
  close(): readonly Part[];
  /** The ids in the client of its suspended tool calls. */
  readonly pending: readonly string[];
  /** The current or last message. */
  readonly latest: () => ShownMessage | undefined;
  /** Treats a message that another call has shown for this one as its own. */
  adopt(message: ShownMessage): void;
  /** The client's id of a tool call in the current message. */
  toolCallId(localId: string): string | undefined;
}

/** Tracks the steps of one call, and in each step the growing message and its tool calls. */
export const createCallParts = (by: CallRef): CallParts => {
  const messages = createShownMessages(by);
  const steps = createSteps(by, messages);
  const tools = createToolParts(by, messages, steps.schemaOf);
  const close = (): readonly Part[] => [...steps.end(), ...tools.cancelSuspended()];
  const pause = (): readonly Part[] => messages.current()?.pause() ?? [];

  const answered = (event: EventOf<'postReasoning'> | EventOf<'postSummary'>): readonly Part[] => {
    // The message is about to be discarded.
    if (event.type === 'postReasoning' && event.again !== undefined) return pause();
    const parts = completed(messages, event.message);
    const runs = event.type === 'postReasoning' && event.finish === 'stop';
    const toolCalls = runs ? toolCallsOf(event.message) : [];
    return [
      ...parts,
      ...pause(),
      ...toolCalls.flatMap((toolCall) => messages.current()?.toolCall(toolCall) ?? []),
    ];
  };
  const replied = ({ reply }: EventOf<'postCall'>): readonly Part[] => {
    if (reply.reason === 'suspended') tools.keepSuspended();
    // A message that another call showed for this one may have been edited since.
    messages.reopen(reply.id);
    const isShown = messages.current()?.id === reply.id;
    const hasMore = textOf(reply) !== '' || reply.content.some(({ type }) => type !== 'text');
    if (!isShown && !hasMore) return close();
    const before = isShown ? [] : steps.next('reply');
    // At its limit, a call may reply with an earlier message.
    if (!isShown && messages.hasEnded(reply.id)) messages.again(reply.id);
    const parts = [...before, ...completed(messages, reply), ...close()];
    return parts.map((part) => ({ ...part, by }));
  };
  return {
    by,
    pending: tools.pending,
    close,
    latest: messages.latest,
    adopt: messages.adopt,
    toolCallId: (localId) => messages.current()?.toolCallId(localId),
    take: (event) => {
      switch (event.type) {
        case 'postReasoning':
        case 'postSummary':
          return answered(event);
        case 'messageDiscarded':
          return messages.discard(event.messageId);
        case 'postCall':
          return replied(event);
        case 'error':
          return close();
        default:
          return steps.take(event) ?? tools.take(event) ?? noticesOf(event, by);
      }
    },
  };
};

/** The steps of a call: each asks the model, whose chunks show a message. */
const createSteps = (by: CallRef, messages: ShownMessages) => {
  let step: string | undefined;
  let offered: readonly ToolDeclaration[] = [];
  const end = (): readonly Part[] => {
    const parts = messages.end();
    if (step === undefined) return parts;
    const ended = step;
    step = undefined;
    return [...parts, { type: 'stepEnd', by, step: ended }];
  };
  const next = (name: string): readonly Part[] => {
    const parts = end();
    step = name;
    messages.forgetLatest();
    return [...parts, { type: 'stepStart', by, step: name }];
  };
  const chunk = (of: ChunkOf & { readonly messageId: string }): readonly Part[] => {
    const [shown, before] = messages.open(of.messageId);
    return [...before, ...shown.chunk(of)];
  };
  return {
    end,
    next,
    schemaOf: (toolName: string) => offered.find(({ name }) => name === toolName)?.inputSchema,
    /** Returns `undefined` for other events. */
    take: (event: AgentEvent): readonly Part[] | undefined => {
      switch (event.type) {
        case 'preReasoning':
          offered = event.options.tools ?? [];
          return next(String(event.iteration));
        case 'preSummary':
          return next('summary');
        case 'prePlanning':
          return next(event.phase);
        case 'reasoningChunk':
        case 'summaryChunk':
          return chunk(event);
        case 'planningChunk': {
          // Planning is not part of the answer, so all of it is shown as thinking.
          const isShown = event.kind === 'text' || event.kind === 'thinking';
          return isShown
            ? chunk({ ...event, kind: 'thinking' })
            : messages.open(event.messageId)[1];
        }
        case 'postPlanning':
          return messages.end();
        default:
          return undefined;
      }
    },
  };
};

const noticesOf = (event: AgentEvent, by: CallRef): readonly Part[] => {
  const notice = noticeOf(event);
  return notice === undefined ? [] : [{ type: 'notice', by, notice }];
};

const toSource = ({ source, title }: RetrievedPassage, index: number): SourceData => ({
  number: index + 1,
  source,
  ...(title === undefined ? {} : { title }),
});

const noticeOf = (event: AgentEvent): Notice | undefined => {
  switch (event.type) {
    case 'modelRetry': {
      const { attempt, attempts, waitMs, error } = event;
      return { name: 'retry', attempt, attempts, waitMs, error };
    }
    case 'modelFallback':
      return { name: 'fallback', error: event.error };
    case 'queued':
      return { name: 'queued', ahead: event.ahead };
    case 'modelWaiting':
      return { name: 'waiting', waitedMs: event.waitedMs };
    case 'retrieved':
      return { name: 'sources', sources: event.passages.map(toSource) };
    case 'stateChanged':
      // Approvals have events of their own.
      if (event.name === 'approvals') return undefined;
      return { name: 'state', of: event.name, state: event.state };
    case 'steered':
      return { name: 'steered', messageId: event.message.id, text: textOf(event.message) };
    default:
      return undefined;
  }
};
