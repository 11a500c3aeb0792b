import { HttpAgent, type Message, type RunAgentInput } from '@ag-ui/client';
import { chat as chatId, type Client, type Opening, type Tab } from '../tab.js';
import type { Line, World } from '../world.js';

/** The client, with the route that the server has for `connectAgent`. */
class Agent extends HttpAgent {
  protected override connect(input: RunAgentInput) {
    return new HttpAgent({ url: `${this.url}/connect` }).run(input);
  }
}

type Content = Extract<Message, { readonly role: 'user' }>['content'];

let count = 0;
const idOf = (kind: string): string => {
  count += 1;
  return `${kind}-${count}`;
};

const question = (content: Content): Message => ({ id: idOf('q'), role: 'user', content });

const textOf = (message: Message): string => {
  if (message.role === 'assistant') return message.content ?? '';
  if (message.role !== 'user') return '';
  const { content } = message;
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
};

const linesOf = (messages: readonly Message[]): readonly Line[] =>
  messages.flatMap((message): readonly Line[] => {
    const { role } = message;
    const text = textOf(message);
    return (role === 'user' || role === 'assistant') && text !== '' ? [{ role, text }] : [];
  });

/** An AG-UI client. It keeps the messages itself, so it shows a branch again by the messages that it had. */
export const agUiTabs = (version: string): Client => {
  const open = async (world: World, { history, chatId: threadId = chatId }: Opening = {}) => {
    const agent = new Agent({
      url: `${world.url()}/api/ag-ui`,
      threadId,
      fetch: world.fetch,
      initialMessages: (history ?? []).map(({ role, text }, at): Message => ({
        id: `own-${at + 1}`,
        role,
        content: text,
      })),
    });
    let error: string | undefined;
    let toolCalls = 0;
    const seen = new Map<string, readonly Message[]>();
    const subscriber = {
      onToolCallEndEvent: () => {
        toolCalls += 1;
      },
      onRunErrorEvent: ({ event }: { event: { message: string } }) => {
        error = event.message;
      },
      onRunFailed: (failed: { error: Error }) => {
        error = failed.error.message;
      },
    };
    const keep = (): void => {
      linesOf(agent.messages).forEach(({ text }) => seen.set(text, [...agent.messages]));
    };
    const run = async (): Promise<void> => {
      error = undefined;
      // The client refuses to run before each interrupt is addressed.
      const resume = agent.pendingInterrupts.map(({ id: interruptId }) => ({
        interruptId,
        status: 'cancelled' as const,
      }));
      await agent
        .runAgent(resume.length === 0 ? {} : { resume }, subscriber)
        .catch((failed: unknown) => {
          error ??= String(failed);
        });
      keep();
    };
    if (history === undefined) {
      await agent.connectAgent({}, subscriber);
      keep();
    }
    const ask = (content: Content): Promise<void> => {
      agent.addMessage(question(content));
      return run();
    };
    const cut = (end: number): void => {
      keep();
      agent.setMessages(agent.messages.slice(0, end));
    };
    const tab: Tab = {
      shown: () => linesOf(agent.messages),
      error: () => error,
      ask,
      askWith: (text, part) => {
        const extra = { type: `${part}-page`, url: '/prices' };
        // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- A part that only others know.
        return ask([{ type: 'text', text }, extra] as Content);
      },
      regenerate: () => {
        cut(agent.messages.findLastIndex(({ role }) => role === 'user') + 1);
        return run();
      },
      edit: (text, other) => {
        cut(agent.messages.findIndex((message) => textOf(message) === text));
        return ask(other);
      },
      show: async (answer) => {
        const messages = seen.get(answer);
        if (messages === undefined) throw new Error(`The client has not seen '${answer}'.`);
        keep();
        agent.setMessages([...messages]);
        return Promise.resolve();
      },
      bring: (content) => {
        const toolCall = agent.messages
          .flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []))
          .at(-1);
        if (toolCall === undefined) throw new Error('There is no card.');
        agent.addMessage({ id: idOf('r'), role: 'tool', toolCallId: toolCall.id, content });
        return run();
      },
      toolCalls: () => toolCalls,
      leave: () => {
        agent.abortRun();
        return Promise.resolve();
      },
      close: () => undefined,
    };
    return tab;
  };
  const alone = 'a question alone continues at the end of the conversation';
  return {
    name: '@ag-ui/client',
    version,
    open,
    missing: {
      staleEdit: alone,
      editFirst: alone,
      regenerateFirst: alone,
      restartStored: 'the client leaves a rejection unhandled if its connection is lost',
      reloadBranches: 'a snapshot has the messages of one branch',
    },
  };
};
