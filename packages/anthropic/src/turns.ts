import type {
  BetaAssistantMessageParam as AssistantMessageParam,
  BetaContentBlockParam as ContentBlockParam,
  BetaUserMessageParam as UserMessageParam,
} from '@anthropic-ai/sdk/resources/beta/messages';
import type { Message } from '@millrace/core';
import { toExactJson } from '@millrace/core/values';

export interface Part {
  readonly type: ContentBlockParam['type'];
  readonly json: string;
}

/** Consecutive blocks of one role, serialized. */
export interface Turn {
  readonly role: (UserMessageParam | AssistantMessageParam)['role'];
  readonly content: readonly Part[];
}

export const toPart = (block: ContentBlockParam): Part => ({
  type: block.type,
  json: toExactJson(block),
});

/** Serializes a turn as one message. */
export const turnText = ({ role, content }: Turn): string => {
  let blocks = '';
  for (const { json } of content) blocks += blocks === '' ? json : `,${json}`;
  return `{"role":"${role}","content":[${blocks}]}`;
};

/** Merges consecutive messages of one role. It drops empty messages, but keeps an empty user turn. */
export const inTurns = (
  messages: readonly Message[],
  partsOf: (message: Message) => readonly Part[],
): readonly Turn[] => {
  const turns: Turn[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const content = partsOf(message);
    const last = turns.at(-1);
    if (last?.role === role) {
      turns[turns.length - 1] = { role, content: [...last.content, ...content] };
    } else if (content.length > 0) turns.push({ role, content });
    else if (role === 'user') turns.push({ role, content: [blank] });
  }
  return turns;
};

/** Stands for a blank user message: without it, the model would continue its last message. */
const blank = toPart({ type: 'text', text: '(empty)' });
