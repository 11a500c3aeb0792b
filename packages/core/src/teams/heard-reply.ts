import { map, type Observable, scan, takeLast } from 'rxjs';
import type { AgentEvent } from '../events.js';
import type { AssistantMessage } from '../message.js';
import { isContentBlock } from '../message.js';
import type { Reply } from '../reply.js';

/** A reply, and what else its agent has said on the way to it. */
export interface HeardReply {
  readonly reply: Reply;
  readonly words: readonly AssistantMessage[];
}

interface Heard {
  /** The call that it is about: the first that is heard of. */
  readonly callId: string;
  readonly words: readonly AssistantMessage[];
  readonly reply: Reply | undefined;
}

/** Makes of the events of one call its reply, and what it said before: messages that survived, with text or media. Emits it at the end. */
export const heardReply = (event$: Observable<AgentEvent>): Observable<HeardReply> =>
  event$.pipe(
    scan(hear, { callId: '', words: [], reply: undefined }),
    takeLast(1),
    map(({ words, reply }) => {
      if (reply === undefined) throw new Error('A call ended without its reply.');
      return { reply, words: words.filter(({ id }) => id !== reply.id) };
    }),
  );

const hear = (heard: Heard, event: AgentEvent): Heard => {
  const { callId = event.callId } = heard.callId === '' ? {} : heard;
  if (event.callId !== callId) return heard;
  const { words } = heard;
  switch (event.type) {
    case 'postReasoning':
    case 'postSummary':
      return event.message.content.some(isContentBlock)
        ? { ...heard, callId, words: [...words, event.message] }
        : { ...heard, callId };
    case 'messageDiscarded':
      return { ...heard, callId, words: words.filter(({ id }) => id !== event.messageId) };
    case 'postCall':
      return { ...heard, callId, reply: event.reply };
    default:
      return heard.callId === callId ? heard : { ...heard, callId };
  }
};
