import { textOf } from 'millrace';
import type { Masks } from '../masks.js';
import type { CallEnd, Part } from '../parts/part.js';
import { toolNoticeChunks } from './tool-notice-chunks.js';
import type { AgentData, AgentProgress, CommonUiMessageChunk } from './ui-message-chunk.js';

/** Sub-agents are shown in data parts; the message itself has none of their text. */
export const agentChunks = (part: Part, masks: Masks): readonly CommonUiMessageChunk[] => {
  const { callId } = part.by;
  switch (part.type) {
    case 'callStart':
      return [agentChunk(part, { status: 'running' })];
    case 'callEnd':
      return [agentChunk(part, agentEndOf(part.end, masks))];
    case 'blockDelta': {
      const { kind, messageId, delta } = part;
      return [progress({ kind, callId, messageId, delta })];
    }
    case 'toolStart': {
      const { id: toolCallId, name: toolName } = part;
      return [progress({ kind: 'tool', callId, toolCallId, toolName, status: 'running' })];
    }
    case 'toolEnd': {
      const { status } = part.outcome;
      return [progress({ kind: 'tool', callId, toolCallId: part.id, status })];
    }
    case 'voided':
      return [progress({ kind: 'discarded', callId, messageId: part.messageId })];
    case 'notice':
      return toolNoticeChunks(part.notice, masks);
    default:
      return [];
  }
};

const agentChunk = (
  { by: { callId, agent, toolCallId } }: Part,
  rest: Omit<AgentData, 'agent' | 'toolCallId'>,
): CommonUiMessageChunk => ({
  type: 'data-agent',
  id: callId,
  data: { agent, ...(toolCallId === undefined ? {} : { toolCallId }), ...rest },
});

const agentEndOf = (end: CallEnd, masks: Masks): Omit<AgentData, 'agent' | 'toolCallId'> => {
  if (end.status === 'replied') {
    const { reply } = end;
    return { status: 'replied', reason: reply.reason, text: textOf(reply) };
  }
  const { status, error } = end;
  return error === undefined ? { status } : { status, text: masks.error(error) };
};

const progress = (data: AgentProgress): CommonUiMessageChunk => ({
  type: 'data-agent-progress',
  data,
  transient: true,
});
