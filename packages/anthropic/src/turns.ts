import type {
  AssistantMessageParam,
  ContentBlockParam,
  UserMessageParam,
} from '@anthropic-ai/sdk/resources/messages';
import type { Message } from '@millrace/core';

/** A block of a message, written. */
export interface Part {
  readonly type: ContentBlockParam['type'];
  readonly json: string;
}

/** What one side says in a row, its blocks written. */
export interface Turn {
  readonly role: (UserMessageParam | AssistantMessageParam)['role'];
  readonly content: readonly Part[];
}

/** Writes a block. */
export const toPart = (block: ContentBlockParam): Part => ({
  type: block.type,
  json: JSON.stringify(block),
});

/** Writes a turn, as a message. */
export const turnText = ({ role, content }: Turn): string => {
  let blocks = '';
  for (const { json } of content) blocks += blocks === '' ? json : `,${json}`;
  return `{"role":"${role}","content":[${blocks}]}`;
};

/** Joins what one side says in a row, and leaves out who says nothing, unless a turn of the user is lost by it. */
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

/** A blank question is one too: without it the model would go on with what it said before. */
const blank = toPart({ type: 'text', text: '(empty)' });
