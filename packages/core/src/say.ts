import type { CallInfo } from './call-info.js';
import { type AssistantBlock, type AssistantMessage, textBlock } from './message.js';

/** Makes a message of the agent's that no model wrote; `position` makes its id. */
export const says = (
  { callId, agent }: Pick<CallInfo, 'callId' | 'agent'>,
  position: string,
  content: string | readonly AssistantBlock[],
): AssistantMessage => ({
  id: `${callId}/${position}`,
  role: 'assistant',
  name: agent.at(-1) ?? '',
  content: typeof content === 'string' ? [textBlock(content)] : content,
});
