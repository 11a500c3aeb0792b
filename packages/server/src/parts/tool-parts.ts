import type { AgentEvent, Envelope, JsonSchema, ToolCallBlock } from 'millrace';
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
  const { denied } = messages;
  const actingMessage = ({ iteration }: Envelope): ShownMessage =>
    messages.currentOr(`${by.callId}/${iteration}`);
  const notify = (event: ToolEvent, noticeOf: (toolCall: ToolCallRef) => Notice) =>
    noticeIn(actingMessage(event), event.toolCall, by, noticeOf);
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
        case 'approvalRequested':
          return notify(event, (it) => askedOn(it, schemaOf(it.toolName)));
        case 'approvalDecided':
          if (!event.approved) denied.add(event.toolCall.id);
          return notify(event, (it) => ({ name: event.type, ...it, approved: event.approved }));
        case 'suspended':
          return notify(event, (it) => {
            if (event.from === 'client') pending.push(it.toolCallId);
            return { name: 'suspended', ...it, request: event.request, from: event.from };
          });
        case 'postActing': {
          // It belongs to an earlier answer, which its question has cancelled.
          if (event.result.cancelled !== undefined) return [];
          const shown = actingMessage(event);
          if (event.result.suspended !== undefined) suspended = shown;
          return shown.result(event, denied.has(event.toolCall.id));
        }
        default:
          return undefined;
      }
    },
  };
};

const askedOn = (toolCall: ToolCallRef, inputSchema: JsonSchema | undefined): Notice => ({
  name: 'approvalRequested',
  ...toolCall,
  ...(inputSchema && { inputSchema }),
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
