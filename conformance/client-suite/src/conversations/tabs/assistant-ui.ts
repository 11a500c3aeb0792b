import type * as AiSdk from 'ai';
import type { UIMessage } from 'ai';
import { filter, firstValueFrom, map, Observable, scan, timeout } from 'rxjs';
import { chat as chatId, type Client, type Opening, type Tab } from '../tab.js';
import { viewsOf } from '../views.js';
import { type Line, longestMs, type World } from '../world.js';
import { messagesOfHistory } from './ai-sdk.js';

// What the suite uses of assistant-ui, which is installed in a folder of its own.

interface ThreadPart {
  readonly type: string;
  readonly text?: string;
  readonly toolCallId?: string;
}

interface ThreadMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant' | 'system';
  readonly content: readonly ThreadPart[];
}

interface Composer {
  setText(text: string): void;
  send(): void;
  beginEdit(): void;
}

interface Thread {
  getState(): { readonly messages: readonly ThreadMessage[]; readonly isRunning: boolean };
  append(message: { readonly role: 'user'; readonly content: readonly unknown[] }): void;
  cancelRun(): void;
  export(): {
    readonly messages: readonly {
      readonly message: ThreadMessage;
      readonly parentId: string | null;
    }[];
  };
  message(at: { readonly index: number }): {
    composer(): Composer;
    reload(): void;
    switchToBranch(to: { readonly branchId: string }): void;
    part(at: { readonly toolCallId: string }): { addToolResult(result: unknown): void };
  };
}

export interface AssistantUi {
  readonly AISDKChat: (options: object) => unknown;
  readonly AssistantChatTransport: new (options: object) => object;
  readonly AuiConfig: (config: { readonly threads: unknown }) => unknown;
  readonly createAssistantClient: (config: unknown) => {
    subscribe(listener: () => void): () => void;
    getClient(): { readonly thread: Thread; readonly composer: Composer };
    destroy(): void;
  };
  readonly flushTapSync: (act: () => void) => void;
}

const textOf = ({ content }: ThreadMessage): string =>
  content.map(({ text }) => text ?? '').join('');

/** The conversation with its branches, as assistant-ui imports it. */
const repositoryOf = async (world: World, id: string) => {
  const views = await viewsOf(world, id);
  const paths = views.map(({ messages }) => messages);
  const items = new Map<
    string,
    { readonly parentId: string | null; readonly message: UIMessage }
  >();
  for (const messages of paths) {
    messages.forEach((message, at) => {
      items.set(message.id, { parentId: messages[at - 1]?.id ?? null, message });
    });
  }
  return { messages: [...items.values()], headId: paths[0]?.at(-1)?.id ?? null };
};

/** It renders what has changed in a few macrotasks, as React does. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 15));

/** assistant-ui without its React components: the client that they use. */
export const assistantUiTabs = (aui: AssistantUi, sdk: typeof AiSdk, version: string): Client => {
  const open = async (world: World, opening: Opening = {}): Promise<Tab> => {
    const id = opening.chatId ?? chatId;
    let error: string | undefined;
    let toolCalls = 0;
    const client = aui.createAssistantClient(
      aui.AuiConfig({
        threads: aui.AISDKChat({
          id,
          transport: new aui.AssistantChatTransport({
            api: `${world.url()}/api/chat`,
            fetch: world.fetch,
          }),
          ...(opening.history
            ? { messages: messagesOfHistory(opening.history) }
            : { messageRepository: await repositoryOf(world, id) }),
          sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithToolCalls,
          onToolCall: () => {
            toolCalls += 1;
          },
          onError: ({ message }: Error) => {
            error = message;
          },
        }),
      }),
    );
    // Without a subscriber it is unmounted.
    client.subscribe(() => undefined);
    const { thread, composer } = client.getClient();
    const running$ = new Observable<boolean>((subscriber) =>
      client.subscribe(() => subscriber.next(thread.getState().isRunning)),
    );
    await settled();
    /** Until the answer that this begins has ended. */
    const until = async (act: () => void): Promise<void> => {
      error = undefined;
      const ended = firstValueFrom(
        running$.pipe(
          scan((before, isRunning) => ({ hasRun: before.hasRun || isRunning, isRunning }), {
            hasRun: false,
            isRunning: false,
          }),
          filter(({ hasRun, isRunning }) => hasRun && !isRunning),
          map(() => undefined),
          timeout(longestMs),
        ),
      );
      aui.flushTapSync(act);
      await ended;
      await settled();
    };
    const messages = () => thread.getState().messages;
    const at = (index: number) => thread.message({ index });
    const indexOf = (text: string) => messages().findIndex((message) => textOf(message) === text);
    return {
      shown: () =>
        messages().flatMap((message): readonly Line[] => {
          const { role } = message;
          const text = textOf(message);
          return role === 'system' || text === '' ? [] : [{ role, text }];
        }),
      error: () => error,
      ask: async (text) => {
        aui.flushTapSync(() => composer.setText(text));
        await until(() => composer.send());
      },
      askWith: (text, part) =>
        until(() => {
          // It has no parts but its own ones, which the adapter sends as data parts.
          const extra = { type: 'data', name: part, data: { url: '/prices' } };
          thread.append({ role: 'user', content: [{ type: 'text', text }, extra] });
        }),
      regenerate: () => until(() => at(messages().length - 1).reload()),
      edit: async (question, text) => {
        const own = () => at(indexOf(question)).composer();
        const composerOf = own();
        aui.flushTapSync(() => composerOf.beginEdit());
        aui.flushTapSync(() => composerOf.setText(text));
        await until(() => composerOf.send());
      },
      show: async (answer) => {
        const known = thread.export().messages;
        const last = known.find(({ message }) => textOf(message) === answer);
        if (last === undefined) throw new Error(`assistant-ui has no answer '${answer}'.`);
        const pathTo = (item: typeof last | undefined): readonly string[] => {
          if (item === undefined) return [];
          const { parentId } = item;
          return [...pathTo(known.find(({ message }) => message.id === parentId)), item.message.id];
        };
        for (const [index, branchId] of pathTo(last).entries()) {
          if (messages()[index]?.id === branchId) continue;
          aui.flushTapSync(() => at(index).switchToBranch({ branchId }));
          // It shows the branch once its store has it.
          while (messages()[index]?.id !== branchId) await new Promise(setImmediate);
        }
      },
      bring: async (output) => {
        const index = messages().length - 1;
        const part = messages()[index]?.content.findLast(({ type }) => type === 'tool-call');
        const { toolCallId } = part ?? {};
        if (toolCallId === undefined) throw new Error('There is no card.');
        await until(() => at(index).part({ toolCallId }).addToolResult(output));
      },
      toolCalls: () => toolCalls,
      leave: async () => {
        thread.cancelRun();
        await settled();
      },
      close: () => client.destroy(),
    };
  };
  // Once its first question is edited, it sends that one only, as other clients send their last message.
  const options = { loneQuestion: 'begins' } as const;
  return { name: 'assistant-ui', version, aiSdk: 7, options, open };
};
