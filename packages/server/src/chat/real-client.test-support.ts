import {
  AbstractChat,
  type ChatInit,
  type ChatState,
  DefaultChatTransport,
  type UIMessage,
} from 'ai';
import type { ChatServer } from './index.js';

/** A chat of the AI SDK without a view. */
export class Chat extends AbstractChat<UIMessage> {
  constructor(init: ChatInit<UIMessage>) {
    const state: ChatState<UIMessage> = {
      status: 'ready',
      error: undefined,
      messages: [],
      pushMessage: (message) => void (state.messages = [...state.messages, message]),
      popMessage: () => void (state.messages = state.messages.slice(0, -1)),
      replaceMessage: (index, message) =>
        void (state.messages = state.messages.with(index, structuredClone(message))),
      snapshot: (it) => structuredClone(it),
    };
    super({ ...init, state });
  }
}

/** The chat of the AI SDK, over a server in this process. */
export const chatOf = (
  { respond }: Pick<ChatServer, 'respond'>,
  id: string,
  init: Partial<ChatInit<UIMessage>> = {},
): Chat =>
  new Chat({
    id,
    transport: new DefaultChatTransport({
      api: 'http://localhost/api/chat',
      fetch: (url, given) => respond(new Request(String(url), given)),
    }),
    ...init,
  });
