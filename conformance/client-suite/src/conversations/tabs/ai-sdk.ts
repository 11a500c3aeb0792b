import type * as AiSdk from 'ai';
import type { UIMessage } from 'ai';
import { chatsOf } from '../../clients/ai-sdk.js';
import { chat as chatId, type Client, type Opening, type Tab } from '../tab.js';
import { linesIn, textIn, viewOf, viewWith } from '../views.js';
import type { Line, World } from '../world.js';

/** The messages of a conversation that only the client has. */
export const messagesOfHistory = (history: readonly Line[]): UIMessage[] =>
  history.map(({ role, text }, at) => ({
    id: `own-${at + 1}`,
    role,
    parts: [{ type: 'text', text }],
  }));

/** The parts beside a text: one of the program, and one that the server does not know. */
export const extraParts = {
  data: { type: 'data-page', data: { url: '/prices' } },
  unknown: { type: 'source-url', sourceId: '1', url: 'https://example.org' },
} as const satisfies Readonly<Record<string, UIMessage['parts'][number]>>;

/** `useChat`. It has no branch picker, so the program loads the other branch, as the chat page does. */
export const aiSdkTabs = (sdk: typeof AiSdk, major: 6 | 7, version: string): Client => {
  const Chat = chatsOf(sdk);
  const open = async (world: World, opening: Opening = {}): Promise<Tab> => {
    const id = opening.chatId ?? chatId;
    const loaded = opening.history
      ? messagesOfHistory(opening.history)
      : [...(await viewOf(world, undefined, id)).messages];
    let toolCalls = 0;
    const chat = new Chat({
      id,
      onToolCall: () => {
        toolCalls += 1;
      },
      messages: loaded,
      transport: new sdk.DefaultChatTransport({
        api: `${world.url()}/api/chat`,
        fetch: world.fetch,
      }),
      sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithToolCalls,
    });
    return {
      shown: () => linesIn(chat.messages),
      error: () => chat.error?.message,
      ask: (text) => chat.sendMessage({ text }),
      askWith: (text, part) =>
        chat.sendMessage({ role: 'user', parts: [{ type: 'text', text }, extraParts[part]] }),
      regenerate: () => chat.regenerate(),
      edit: (question, text) => {
        const { id: messageId = '' } = chat.messages.find((it) => textIn(it) === question) ?? {};
        return chat.sendMessage({ text, messageId });
      },
      show: async (answer) => {
        chat.messages = [...(await viewWith(world, answer, id)).messages];
      },
      bring: async (output) => {
        const part = chat.lastMessage?.parts.findLast((it) => sdk.isToolUIPart(it));
        if (part === undefined) throw new Error('There is no card.');
        const ended = chat.ended();
        await chat.addToolOutput({ tool: 'pick', toolCallId: part.toolCallId, output });
        await ended;
      },
      toolCalls: () => toolCalls,
      leave: () => chat.stop(),
      close: () => undefined,
    };
  };
  return { name: `ai ${major}`, version, aiSdk: major, open };
};
