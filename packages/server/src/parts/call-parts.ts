import {
  type AgentEvent,
  type AssistantMessage,
  type Envelope,
  type EventOf,
  textOf,
  type ToolCallBlock,
  toolCallsOf,
} from '@millrace/core';
import type { RetrievedPassage } from '@millrace/core/retrieval';
import type { Notice, Part, SourceData, CallRef, ToolCallRef } from './part.js';
import { createShownMessage, type ShownMessage } from './shown-message.js';

/** Converts the events of one call to parts. */
export interface CallParts {
  readonly by: CallRef;
  take(event: AgentEvent): readonly Part[];
  /** Ends everything that is open. */
  close(): readonly Part[];
  /** The ids in the client of its suspended tool calls. */
  readonly pending: readonly string[];
  /** The current or last message. */
  readonly latest: ShownMessage | undefined;
  /** Treats a message that another call has shown for this one as its own. */
  adopt(message: ShownMessage): void;
  /** The client's id of a tool call in the current message. */
  toolCallId(localId: string): string | undefined;
}

/** Tracks the steps of one call, and in each step the growing message and its tool calls. */
export const createCallParts = (by: CallRef): CallParts => {
  let step: string | undefined;
  let message: ShownMessage | undefined;
  /** The last message of the current step. A reply that repeats one of an earlier step is shown again. */
  let latest: ShownMessage | undefined;
  /** The ids of messages that have ended. */
  const endedIds = new Set<string>();
  /** The message with suspended tools. They end as not run unless the call ends as suspended. */
  let suspended: ShownMessage | undefined;
  let edits = 0;
  const denied = new Set<string>();
  const pending: string[] = [];

  const endMessage = (): readonly Part[] => {
    const parts = message?.close() ?? [];
    if (message !== undefined) endedIds.add(message.id);
    latest = message ?? latest;
    message = undefined;
    denied.clear();
    return parts;
  };
  const endStep = (): readonly Part[] => {
    const parts = endMessage();
    if (step === undefined) return parts;
    const ended = step;
    step = undefined;
    return [...parts, { type: 'stepEnd', by, step: ended }];
  };
  const close = (): readonly Part[] => [...endStep(), ...(suspended?.cancel() ?? [])];
  const nextStep = (name: string): readonly Part[] => {
    const parts = endStep();
    step = name;
    latest = undefined;
    return [...parts, { type: 'stepStart', by, step: name }];
  };
  /** The message with this id; ends another one that is open. */
  const messageOf = (id: string): readonly [ShownMessage, readonly Part[]] => {
    if (message?.id === id) return [message, []];
    const parts = endMessage();
    message = createShownMessage(by, id, id);
    return [message, parts];
  };
  /** The message whose tools run. Starts it if its own events were filtered out. */
  const actingMessage = ({ iteration }: Envelope): ShownMessage => {
    const id = `${by.callId}/${iteration}`;
    message ??= createShownMessage(by, id, id);
    return message;
  };
  const voided = (shown: ShownMessage): readonly Part[] =>
    shown.hasBegun
      ? [...endMessage(), { type: 'voided', by, messageId: shown.messageId }]
      : endMessage();

  /** Shows the missing rest of a message. If its shown text was edited, voids it and shows it again under a new id. */
  const complete = ({ id, content }: Pick<AssistantMessage, 'id' | 'content'>): readonly Part[] => {
    const [shown, before] = messageOf(id);
    const text = textOf({ content });
    const soFar = shown.text;
    const rest = (it: ShownMessage): readonly Part[] => [
      ...it.sources(content),
      ...it.media(content),
    ];
    if (text.startsWith(soFar)) {
      return [...before, ...shown.appendText(text.slice(soFar.length)), ...rest(shown)];
    }
    const parts = voided(shown);
    edits += 1;
    message = createShownMessage(by, id, `${id}~${edits}`);
    return [...before, ...parts, ...message.appendText(text), ...rest(message)];
  };

  const answered = (event: EventOf<'postReasoning'> | EventOf<'postSummary'>): readonly Part[] => {
    // The message is about to be discarded.
    if (event.type === 'postReasoning' && event.again !== undefined) return message?.pause() ?? [];
    const parts = complete(event.message);
    const runs = event.type === 'postReasoning' && event.finish === 'stop';
    const toolCalls = runs ? toolCallsOf(event.message) : [];
    return [
      ...parts,
      ...(message?.pause() ?? []),
      ...toolCalls.flatMap((toolCall) => message?.toolCall(toolCall) ?? []),
    ];
  };

  const replied = ({ reply }: EventOf<'postCall'>): readonly Part[] => {
    if (reply.reason === 'suspended') suspended = undefined;
    // A message that another call showed for this one may have been edited since.
    if (latest?.id === reply.id) message ??= latest;
    const isShown = message?.id === reply.id;
    const hasMore = textOf(reply) !== '' || reply.content.some(({ type }) => type !== 'text');
    if (!isShown && !hasMore) return close();
    const before = isShown ? [] : nextStep('reply');
    if (!isShown && endedIds.has(reply.id)) {
      // At its limit, a call may reply with an earlier message.
      edits += 1;
      message = createShownMessage(by, reply.id, `${reply.id}~${edits}`);
    }
    const parts = [...before, ...complete(reply), ...close()];
    return parts.map((part) => ({ ...part, by }));
  };

  /** A notice about a tool call, after the tool call itself. */
  const notify = (
    toolCall: ToolCallBlock,
    event: Envelope,
    noticeOf: (use: ToolCallRef) => Notice,
  ): readonly Part[] => {
    const shown = actingMessage(event);
    const { id: localId, name: toolName } = toolCall;
    const parts = shown.toolCall(toolCall);
    const toolCallId = shown.toolCallId(localId) ?? localId;
    return [...parts, { type: 'notice', by, notice: noticeOf({ toolCallId, toolName, localId }) }];
  };

  return {
    by,
    pending,
    close,
    get latest() {
      return message ?? latest;
    },
    adopt: (shown) => {
      latest = shown;
    },
    toolCallId: (localId) => message?.toolCallId(localId),
    take: (event) => {
      switch (event.type) {
        case 'preReasoning':
          return nextStep(String(event.iteration));
        case 'preSummary':
          return nextStep('summary');
        case 'reasoningChunk':
        case 'summaryChunk': {
          const [shown, before] = messageOf(event.messageId);
          return [...before, ...shown.chunk(event)];
        }
        case 'prePlanning':
          return nextStep(event.phase);
        case 'planningChunk': {
          // Planning is not part of the answer, so all of it is shown as thinking.
          const [shown, before] = messageOf(event.messageId);
          return [
            ...before,
            ...(event.kind === 'text' || event.kind === 'thinking'
              ? shown.chunk({ ...event, kind: 'thinking' })
              : []),
          ];
        }
        case 'postPlanning':
          return endMessage();
        case 'postReasoning':
        case 'postSummary':
          return answered(event);
        case 'messageDiscarded':
          if (message === undefined && latest?.id === event.messageId) message = latest;
          return message?.id === event.messageId ? voided(message) : [];
        case 'vetoed':
          if (event.of === 'preActing' && event.toolCallId !== undefined) {
            denied.add(event.toolCallId);
          }
          return [];
        case 'preActing':
          return actingMessage(event).toolCall(event.toolCall);
        case 'actingChunk':
          return actingMessage(event).progress(event);
        case 'repaired':
          // A tool call written as text has no id yet, and is shown when it has one.
          return event.toolCall === undefined
            ? []
            : notify(event.toolCall, event, (use) => ({ name: 'repaired', ...use }));
        case 'approvalRequested':
          return notify(event.toolCall, event, (use) => ({ name: 'approvalRequested', ...use }));
        case 'approvalDecided': {
          const { approved, toolCall } = event;
          if (!approved) denied.add(toolCall.id);
          return notify(event.toolCall, event, (use) => ({
            name: 'approvalDecided',
            ...use,
            approved,
          }));
        }
        case 'suspended': {
          const { request, from } = event;
          return notify(event.toolCall, event, (use) => {
            if (from === 'client') pending.push(use.toolCallId);
            return { name: 'suspended', ...use, request, from };
          });
        }
        case 'postActing': {
          const shown = actingMessage(event);
          if (event.result.suspended !== undefined) suspended = shown;
          return shown.result(event, denied.has(event.toolCall.id));
        }
        case 'postCall':
          return replied(event);
        case 'error':
          return close();
        default: {
          const notice = noticeOf(event);
          return notice === undefined ? [] : [{ type: 'notice', by, notice }];
        }
      }
    },
  };
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
