import type { CallInfo } from '../call-info.js';
import type { Message } from '../message.js';
import type { ToolContext } from '../tools/types.js';

/** The path of names is made anew for each call, and it is what a call and the context of its tools share. */
const conversations = new WeakMap<CallInfo['agent'], readonly Message[]>();

/** Notes what the model of a call was shown last, for the tools that it asks for. */
export const noteConversation = (
  { agent }: Pick<CallInfo, 'agent'>,
  messages: readonly Message[],
): void => {
  conversations.set(agent, messages);
};

/** What the model of the call was shown when it asked for the tool. */
export const conversationOf = ({ agent }: Pick<ToolContext, 'agent'>): readonly Message[] =>
  conversations.get(agent) ?? [];
