import type { AgentEvent, Envelope, EventOf, JsonSchema, ToolCallBlock } from 'millrace';
import { isUncertain } from 'millrace/journal';
import { defined, isSameJson } from 'millrace/values';
import { plainJson } from '../plain-json.js';
import type { CallRef, Notice, Part, ToolCallRef } from './part.js';
import type { ShownMessage } from './shown-message.js';
import type { ShownMessages } from './shown-messages.js';

/** Converts the events of the tool calls of one call to parts. */
export interface ToolParts {
  /** Returns `undefined` for other events. */
  take(event: AgentEvent): readonly Part[] | undefined;
  /** The ids in the client of the suspended tool calls whose results it brings. */
  readonly pending: readonly string[];
  /** Leaves the suspended tools open: the call ends as suspended. */
  keepSuspended(): void;
  /** Ends the suspended tools as not run. */
  cancelSuspended(): readonly Part[];
}

export const createToolParts = (
  by: CallRef,
  messages: ShownMessages,
  schemaOf: (toolName: string) => JsonSchema | undefined,
): ToolParts => {
  /** The message with suspended tools. */
  let suspended: ShownMessage | undefined;
  const pending: string[] = [];
  const asked = new Map<string, unknown>();
  const { denied } = messages;
  const actingMessage = ({ iteration }: Envelope): ShownMessage =>
    messages.currentOr(`${by.callId}/${iteration}`);
  const notify = (event: ToolEvent, noticeOf: (toolCall: ToolCallRef) => Notice) =>
    noticeIn(actingMessage(event), event.toolCall, by, noticeOf);
  const withSchema = (toolCall: ToolCallRef) => {
    const inputSchema = schemaOf(toolCall.toolName);
    return { ...toolCall, ...(inputSchema && { inputSchema }) };
  };
  return {
    pending,
    keepSuspended: () => {
      suspended = undefined;
    },
    cancelSuspended: () => suspended?.cancel() ?? [],
    take: (event) => {
      switch (event.type) {
        case 'vetoed':
          if (event.of === 'preActing' && event.toolCallId !== undefined) {
            denied.add(event.toolCallId);
          }
          return [];
        case 'preActing':
          return actingMessage(event).toolCall(event.toolCall);
        case 'actingChunk':
          return actingMessage(event).progress(event);
        case 'repaired': {
          const { toolCall } = event;
          // A tool call written as text has no id yet, and is shown when it has one.
          if (toolCall === undefined) return [];
          return notify({ ...event, toolCall }, (it) => ({ name: 'repaired', ...it }));
        }
        case 'approvalRequested': {
          const key = keyOf(event);
          // Another approver may be asked about what the first one has edited.
          if (!asked.has(key)) asked.set(key, plainJson(event.toolCall.input));
          return notify(event, (it) => ({ name: event.type, ...withSchema(it) }));
        }
        case 'approvalDecided':
          if (!event.approved) denied.add(event.toolCall.id);
          return notify(event, (it) => decidedOn(it, event, asked.get(keyOf(event))));
        case 'suspended':
          return notify(event, (it) => {
            if (event.from === 'client') pending.push(it.toolCallId);
            return { name: 'suspended', ...it, request: event.request, from: event.from };
          });
        case 'postActing': {
          // It belongs to an earlier answer, which its question has cancelled.
          if (event.result.cancelled !== undefined) return [];
          const shown = actingMessage(event);
          const parts = shown.result(event, denied.has(event.toolCall.id));
          if (event.result.suspended === undefined) return parts;
          suspended = shown;
          if (!isUncertain(event.result.suspended)) return parts;
          return [...parts, ...notify(event, (it) => ({ name: 'uncertain', ...withSchema(it) }))];
        }
        default:
          return undefined;
      }
    },
  };
};

/** The ids of tool calls may come again in later turns. */
const keyOf = ({ iteration, toolCall: { id } }: ToolEvent): string => `${iteration}/${id}`;

const decidedOn = (
  toolCall: ToolCallRef,
  { approved, reason, by, toolCall: { input } }: EventOf<'approvalDecided'>,
  asked: unknown,
): Notice => ({
  name: 'approvalDecided',
  ...toolCall,
  approved,
  ...(!approved && defined({ reason, by })),
  ...(approved && asked !== undefined && !isSameJson(asked, plainJson(input)) && { asked }),
});

type ToolEvent = Envelope & { readonly toolCall: ToolCallBlock };

/** A notice about a tool call, after the tool call itself. */
const noticeIn = (
  shown: ShownMessage,
  toolCall: ToolCallBlock,
  by: CallRef,
  noticeOf: (toolCall: ToolCallRef) => Notice,
): readonly Part[] => {
  const { id: localId, name: toolName } = toolCall;
  const parts = shown.toolCall(toolCall);
  const toolCallId = shown.toolCallId(localId) ?? localId;
  return [...parts, { type: 'notice', by, notice: noticeOf({ toolCallId, toolName, localId }) }];
};
