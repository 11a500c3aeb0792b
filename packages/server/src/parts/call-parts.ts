import {
  type AgentEvent,
  type AssistantMessage,
  type Envelope,
  type EventOf,
  textOf,
  type ToolUseBlock,
  toolUsesOf,
} from '@millrace/core';
import type { RetrievedPassage } from '@millrace/core/retrieval';
import type { Notice, Part, SourceData, Speaker, ToolUseRef } from './part.js';
import { createShownMessage, type ShownMessage } from './shown-message.js';

/** What one call shows, from its events. */
export interface CallParts {
  readonly by: Speaker;
  take(event: AgentEvent): readonly Part[];
  /** Ends all that is open. */
  close(): readonly Part[];
  /** The message that it has shown last, or shows. */
  readonly latest: ShownMessage | undefined;
  /** Takes a message that has been shown for this call as one of its own. */
  adopt(message: ShownMessage): void;
  /** What the reader calls a use of a tool of the last message. */
  toolCallId(toolUseId: string): string | undefined;
}

/** Follows one call: its steps, and in each of them the message that grows and the tools it asks for. */
export const createCallParts = (by: Speaker): CallParts => {
  let step: string | undefined;
  let message: ShownMessage | undefined;
  let latest: ShownMessage | undefined;
  /** The ids of messages that have ended. */
  const over = new Set<string>();
  /** Its tools are suspended, unless the call ends otherwise. */
  let waiting: ShownMessage | undefined;
  let edits = 0;
  const denied = new Set<string>();

  const endMessage = (): readonly Part[] => {
    const parts = message?.close() ?? [];
    if (message !== undefined) over.add(message.id);
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
  const close = (): readonly Part[] => [...endStep(), ...(waiting?.cancel() ?? [])];
  const nextStep = (name: string): readonly Part[] => {
    const parts = endStep();
    step = name;
    return [...parts, { type: 'stepStart', by, step: name }];
  };
  /** The message of this id, begun where another one is shown. */
  const messageOf = (id: string): readonly [ShownMessage, readonly Part[]] => {
    if (message?.id === id) return [message, []];
    const parts = endMessage();
    message = createShownMessage(by, id, id);
    return [message, parts];
  };
  /** The message whose tools run: begun here only where its own events have not been told. */
  const acting = ({ iteration }: Envelope): ShownMessage => {
    const id = `${by.callId}/${iteration}`;
    message ??= createShownMessage(by, id, id);
    return message;
  };
  const voided = (shown: ShownMessage): readonly Part[] =>
    shown.hasBegun
      ? [...endMessage(), { type: 'voided', by, messageId: shown.messageId }]
      : endMessage();

  /** Shows what is still missing of a message. One that has been edited cannot be unsaid: it is said anew. */
  const complete = ({ id, content }: Pick<AssistantMessage, 'id' | 'content'>): readonly Part[] => {
    const [shown, before] = messageOf(id);
    const text = textOf({ content });
    const soFar = shown.text;
    if (text.startsWith(soFar)) {
      return [...before, ...shown.say(text.slice(soFar.length)), ...shown.media(content)];
    }
    const parts = voided(shown);
    edits += 1;
    message = createShownMessage(by, id, `${id}~${edits}`);
    return [...before, ...parts, ...message.say(text), ...message.media(content)];
  };

  const answered = (event: EventOf<'postReasoning'> | EventOf<'postSummary'>): readonly Part[] => {
    // It is about to be discarded.
    if (event.type === 'postReasoning' && event.again !== undefined) return message?.pause() ?? [];
    const parts = complete(event.message);
    const runs = event.type === 'postReasoning' && event.finish === 'stop';
    const toolUses = runs ? toolUsesOf(event.message) : [];
    return [
      ...parts,
      ...(message?.pause() ?? []),
      ...toolUses.flatMap((toolUse) => message?.toolUse(toolUse) ?? []),
    ];
  };

  const replied = ({ reply }: EventOf<'postCall'>): readonly Part[] => {
    if (reply.reason === 'suspended') waiting = undefined;
    // What has been shown for the call may have another end than it was given there.
    if (latest?.id === reply.id) message ??= latest;
    const isShown = message?.id === reply.id;
    const hasMore = textOf(reply) !== '' || reply.content.some(({ type }) => type !== 'text');
    if (!isShown && !hasMore) return close();
    const before = isShown ? [] : nextStep('reply');
    if (!isShown && over.has(reply.id)) {
      // At its limit, a call may reply with what it said some messages ago.
      edits += 1;
      message = createShownMessage(by, reply.id, `${reply.id}~${edits}`);
    }
    const parts = [...before, ...complete(reply), ...close()];
    return parts.map((part) => ({ ...part, by }));
  };

  /** Tells of a use of a tool, which its reader has seen by then as it is. */
  const told = (
    toolUse: ToolUseBlock,
    event: Envelope,
    noticeOf: (use: ToolUseRef) => Notice,
  ): readonly Part[] => {
    const shown = acting(event);
    const { id: toolUseId, name: toolName } = toolUse;
    const parts = shown.toolUse(toolUse);
    const toolCallId = shown.toolCallId(toolUseId) ?? toolUseId;
    return [
      ...parts,
      { type: 'notice', by, notice: noticeOf({ toolCallId, toolName, toolUseId }) },
    ];
  };

  return {
    by,
    close,
    get latest() {
      return message ?? latest;
    },
    adopt: (shown) => {
      latest = shown;
    },
    toolCallId: (toolUseId) => message?.toolCallId(toolUseId),
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
          // It is no part of the answer, whatever it is made of.
          const [shown, before] = messageOf(event.messageId);
          return [
            ...before,
            ...(event.kind === 'toolInput' ? [] : shown.chunk({ ...event, kind: 'thinking' })),
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
          if (event.of === 'preActing' && event.toolUseId !== undefined) {
            denied.add(event.toolUseId);
          }
          return [];
        case 'preActing':
          return acting(event).toolUse(event.toolUse);
        case 'actingChunk':
          return acting(event).progress(event);
        case 'repaired':
          // An action that was written as text has no use of a tool yet, and is shown when it has.
          return event.toolUse === undefined
            ? []
            : told(event.toolUse, event, (use) => ({ name: 'repaired', ...use }));
        case 'approvalRequested':
          return told(event.toolUse, event, (use) => ({ name: 'approvalRequested', ...use }));
        case 'approvalDecided': {
          const { approved, toolUse } = event;
          if (!approved) denied.add(toolUse.id);
          return told(event.toolUse, event, (use) => ({
            name: 'approvalDecided',
            ...use,
            approved,
          }));
        }
        case 'suspended': {
          const { request } = event;
          return told(event.toolUse, event, (use) => ({ name: 'suspended', ...use, request }));
        }
        case 'postActing': {
          const shown = acting(event);
          if (event.result.suspended !== undefined) waiting = shown;
          return shown.result(event, denied.has(event.toolUse.id));
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
      // Each approval is told by events of its own.
      if (event.name === 'approvals') return undefined;
      return { name: 'state', of: event.name, state: event.state };
    case 'steered':
      return { name: 'steered', messageId: event.message.id, text: textOf(event.message) };
    default:
      return undefined;
  }
};
