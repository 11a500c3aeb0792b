import { match } from 'node:assert/strict';
import type * as AiSdk from 'ai';
import type {
  ChatInit,
  ChatOnFinishCallback,
  ChatState,
  ChatStatus,
  ChatTransport,
  UIMessage,
} from 'ai';
import { filter, firstValueFrom, map, type Observable, startWith, Subject } from 'rxjs';
import { WebSocket } from 'ws';
import {
  same,
  type Column,
  picture,
  picturesIn,
  textsAsked,
  thePicture,
  reason,
  resultsAsked,
} from '../column.js';
import { isRecord } from 'millrace/values';
import type { Stage } from '../stage.js';

type Ended = Parameters<ChatOnFinishCallback<UIMessage>>[0];

/** The state that `useChat` keeps in React. */
export class State implements ChatState<UIMessage> {
  readonly #changed$ = new Subject<void>();
  readonly changed$ = this.#changed$.asObservable();
  status: ChatStatus = 'ready';
  error: Error | undefined;
  messages: UIMessage[];
  constructor(messages: UIMessage[]) {
    this.messages = messages;
  }
  readonly snapshot = <T>(value: T): T => structuredClone(value);
  readonly pushMessage = (message: UIMessage): void => {
    this.messages = [...this.messages, message];
    this.#changed$.next();
  };
  readonly popMessage = (): void => {
    this.messages = this.messages.slice(0, -1);
  };
  readonly replaceMessage = (index: number, message: UIMessage): void => {
    this.messages = this.messages.with(index, structuredClone(message));
    this.#changed$.next();
  };
}

/** `useChat` without React. */
interface Chat extends AiSdk.AbstractChat<UIMessage> {
  /** Resolves once the last message shows this text. */
  readonly shows: (text: string) => Promise<string>;
  /** How the stream ends that runs now, or the next one. */
  readonly ended: () => Promise<Ended>;
}

/** The class that `useChat` is made of. */
export const chatsOf = (sdk: typeof AiSdk): new (init: ChatInit<UIMessage>) => Chat => {
  class OwnChat extends sdk.AbstractChat<UIMessage> {
    readonly #changed$: Observable<void>;
    readonly #ended$ = new Subject<Ended>();
    constructor({ messages = [], ...init }: ChatInit<UIMessage>) {
      const state = new State(messages);
      super({ ...init, state, onFinish: (end) => this.#ended$.next(end) });
      this.#changed$ = state.changed$;
    }

    readonly shows = (text: string) =>
      firstValueFrom(
        this.#changed$.pipe(
          startWith(undefined),
          map(() => answerIn(this)),
          filter((shown) => shown === text),
        ),
      );

    readonly ended = async (): Promise<Ended> => {
      const end = await firstValueFrom(this.#ended$);
      // Afterwards the chat sends what it sends by itself, and becomes ready.
      await new Promise(setImmediate);
      return end;
    };
  }
  return OwnChat;
};

const answerIn = ({ lastMessage }: Pick<Chat, 'lastMessage'>): string => {
  const parts = lastMessage?.role === 'assistant' ? lastMessage.parts : [];
  const lastStep = parts.findLastIndex(({ type }) => type === 'step-start');
  return parts
    .slice(lastStep + 1)
    .map((part) => (part.type === 'text' ? part.text : ''))
    .join('');
};

/** How a chat reaches the server. */
interface Connection {
  readonly transport: ChatTransport<UIMessage>;
  readonly lose: () => void;
}

type Connect = (stage: Stage) => Connection;

const overHttp =
  (sdk: typeof AiSdk): Connect =>
  ({ url }) => {
    const lost$ = new Subject<void>();
    const breakable: typeof fetch = async (at, init) => {
      const response = await fetch(at, init);
      const reader = response.body?.getReader();
      if (reader === undefined) return response;
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          void firstValueFrom(lost$).then(() => {
            controller.error(new TypeError('network error'));
            return reader.cancel();
          });
        },
        pull: async (controller) => {
          const { done, value } = await reader.read();
          if (done) controller.close();
          else controller.enqueue(value);
        },
      });
      return new Response(body, response);
    };
    const transport = new sdk.DefaultChatTransport({ api: `${url}/api/chat`, fetch: breakable });
    return { transport, lose: () => lost$.next() };
  };

/** What version 7 has, and the types of version 6 have not. */
type WebSocketTransport = new (options: {
  readonly url: string;
  readonly webSocket: unknown;
}) => ChatTransport<UIMessage>;

/** With `ws` as the client, because Node 20 has none. */
export const overWebSocket =
  (Transport: WebSocketTransport): Connect =>
  ({ url }) => {
    const sockets: WebSocket[] = [];
    class Breakable extends WebSocket {
      constructor(at: string | URL, protocols?: string | string[]) {
        super(at, protocols);
        sockets.push(this);
      }
    }
    const transport = new Transport({ url: `${url}/api/chat`, webSocket: Breakable });
    return {
      transport,
      lose: () => {
        sockets.forEach((socket) => {
          socket.terminate();
        });
      },
    };
  };

/** The AI SDK, version 6 or 7: their clients have the same interface. */
export const aiSdk = (
  sdk: typeof AiSdk,
  major: 6 | 7,
  version: string,
  { name = `ai ${major}`, connect = overHttp(sdk) } = {},
): Column => {
  const Chat = chatsOf(sdk);
  const chatOf = (stage: Stage, init: ChatInit<UIMessage> = {}): Chat =>
    new Chat({ id: 'chat-1', transport: connect(stage).transport, ...init });
  const toolsIn = ({ messages }: Chat) =>
    messages.flatMap(({ parts }) => parts).filter((part) => sdk.isToolUIPart(part));
  const statesIn = (chat: Chat) => toolsIn(chat).map(({ state }) => state);

  /** A chat that ended well: it is ready, and the SDK takes its messages back. */
  const isWell = async (chat: Chat, answer: string, count = 2): Promise<void> => {
    same(
      [chat.status, chat.error, answerIn(chat), chat.messages.length],
      ['ready', undefined, answer, count],
    );
    same((await sdk.safeValidateUIMessages({ messages: chat.messages })).success, true);
  };
  const asked = async (stage: Stage, init?: ChatInit<UIMessage>): Promise<Chat> => {
    const chat = chatOf(stage, init);
    await chat.sendMessage({ text: 'Hi' });
    return chat;
  };
  const historyOf = async ({ url }: Stage): Promise<UIMessage[]> => {
    const history: unknown = await (await fetch(`${url}/api/chat/chat-1`)).json();
    const messages = isRecord(history) ? history['messages'] : undefined;
    return sdk.validateUIMessages({ messages });
  };
  const twoAnswers = async (stage: Stage): Promise<Chat> => {
    const chat = await asked(stage);
    await chat.sendMessage({ text: '1?' });
    await isWell(chat, 'One.', 4);
    return chat;
  };

  return {
    name,
    version,
    aiSdk: major,
    cells: {
      good: async (stage) => {
        const chat = chatOf(stage);
        const ended = chat.ended();
        await chat.sendMessage({ text: 'Hi' });
        const { finishReason } = await ended;
        await isWell(chat, 'Hello Ann.');
        same(finishReason, 'stop');
        return 'text';
      },
      parallel: async (stage) => {
        const chat = await asked(stage);
        await isWell(chat, 'Rain in both.');
        same(
          toolsIn(chat).map((part) => [part.state, part.output]),
          [
            ['output-available', 'Rain in Oslo.'],
            ['output-available', 'Rain in Rome.'],
          ],
        );
        return 'output-available';
      },
      toolError: async (stage) => {
        const chat = await asked(stage);
        await isWell(chat, 'It is broken.');
        const [part] = toolsIn(chat);
        same([part?.state, part?.errorText], ['output-error', 'The tool failed.']);
        return 'output-error';
      },
      denial: async (stage) => {
        const chat = await asked(stage);
        await isWell(chat, 'Then not.');
        same(JSON.stringify(chat.messages).includes('secret'), false);
        const state = major === 7 ? 'output-denied' : 'output-error';
        same([statesIn(chat), stage.paid], [[state], []]);
        return state;
      },
      approval: async (stage) => {
        const chat = await asked(stage, {
          sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithApprovalResponses,
        });
        same([statesIn(chat), stage.paid], [['approval-requested'], []]);
        const ended = chat.ended();
        const id = toolsIn(chat)[0]?.approval?.id ?? '';
        await chat.addToolApprovalResponse({ id, approved: true });
        await ended;
        await isWell(chat, 'It is paid.');
        same([statesIn(chat), stage.paid], [['output-available'], [{ amount: 5 }]]);
        return 'addToolApprovalResponse';
      },
      refusal: async (stage) => {
        const chat = await asked(stage, {
          sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithApprovalResponses,
        });
        const ended = chat.ended();
        const id = toolsIn(chat)[0]?.approval?.id ?? '';
        await chat.addToolApprovalResponse({ id, approved: false, reason });
        await ended;
        await isWell(chat, 'Then not.');
        same([statesIn(chat), stage.paid], [['output-denied'], []]);
        match(resultsAsked(stage), /Too much/);
        return 'output-denied';
      },
      lateApproval: async (stage) => {
        await asked(stage);
        const chat = chatOf(stage, {
          messages: await historyOf(stage),
          sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithApprovalResponses,
        });
        await chat.resumeStream();
        same([statesIn(chat), stage.paid, chat.messages.length], [['approval-requested'], [], 2]);
        const ended = chat.ended();
        const id = toolsIn(chat)[0]?.approval?.id ?? '';
        await chat.addToolApprovalResponse({ id, approved: true });
        await ended;
        await isWell(chat, 'It is paid.');
        same([statesIn(chat), stage.paid], [['output-available'], [{ amount: 5 }]]);
        return 'history, resumeStream';
      },
      suspended: async (stage) => {
        const chat = await asked(stage, {
          sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithToolCalls,
        });
        same(statesIn(chat), ['input-available']);
        const ended = chat.ended();
        const toolCallId = toolsIn(chat)[0]?.toolCallId ?? '';
        await chat.addToolOutput({ tool: 'where', toolCallId, output: { city: 'Oslo' } });
        await ended;
        await isWell(chat, 'You are in Oslo.');
        same(statesIn(chat), ['output-available']);
        match(resultsAsked(stage), /Oslo/);
        return 'addToolOutput';
      },
      clientTool: '`useChat` sends no tool definitions; give the agent a tool that suspends',
      regenerate: async (stage) => {
        const chat = await twoAnswers(stage);
        await chat.regenerate();
        await isWell(chat, 'Two.', 4);
        same(textsAsked(stage), ['Hi', 'Hello.', '1?']);
        return 'regenerate';
      },
      edit: async (stage) => {
        const chat = await twoAnswers(stage);
        await chat.sendMessage({ text: '2?', messageId: chat.messages[2]?.id ?? '' });
        await isWell(chat, 'Two.', 4);
        same(textsAsked(stage), ['Hi', 'Hello.', '2?']);
        return 'sendMessage({ messageId })';
      },
      picture: async (stage) => {
        const chat = chatOf(stage);
        const url = `data:image/png;base64,${picture}`;
        await chat.sendMessage({
          text: 'What is it?',
          files: [{ type: 'file', mediaType: 'image/png', url }],
        });
        await isWell(chat, 'A cat.');
        same(picturesIn(stage), thePicture);
        return 'file part';
      },
      fault: async (stage) => {
        const chat = await asked(stage);
        same(chat.status, 'error');
        match(
          chat.error?.message ?? '',
          /^The service did not respond as expected\. Please try again\.$/,
        );
        same(stage.errors, ['server']);
        return "status 'error'";
      },
      interrupt: async (stage) => {
        const chat = chatOf(stage);
        const ended = chat.ended();
        const sent = chat.sendMessage({ text: 'Hi' });
        stage.held.say('Once');
        await chat.shows('Once');
        const stopped = await fetch(`${stage.url}/api/chat/chat-1/stop`, { method: 'POST' });
        same(await stopped.json(), { stopped: 1 });
        await sent;
        await isWell(chat, 'Once');
        const { finishReason, isAbort } = await ended;
        const finishedBy: string | undefined = finishReason;
        same([finishedBy, isAbort], [major === 7 ? 'interrupted' : 'other', false]);
        return `finish '${finishedBy ?? ''}'`;
      },
      abort: async (stage) => {
        const chat = chatOf(stage);
        const ended = chat.ended();
        const sent = chat.sendMessage({ text: 'Hi' });
        stage.held.say('Once');
        await chat.shows('Once');
        await chat.stop();
        await sent;
        same((await ended).isAbort, true);
        await stage.held.left();
        await isWell(chat, 'Once');
        return 'stop';
      },
      resume: async (stage) => {
        const { transport, lose } = connect(stage);
        const chat = chatOf(stage, { transport });
        const ended = chat.ended();
        const sent = chat.sendMessage({ text: 'Hi' });
        stage.held.say('Once ');
        await chat.shows('Once ');
        lose();
        await sent;
        same([chat.status, (await ended).isDisconnect], ['error', true]);
        const resumed = chat.resumeStream();
        stage.held.say('more.');
        await chat.shows('Once more.');
        stage.held.end();
        await resumed;
        await isWell(chat, 'Once more.');
        return 'resumeStream';
      },
      reload: async (stage) => {
        const before = await asked(stage);
        void before.sendMessage({ text: '1?' });
        stage.held.say('Once ');
        await before.shows('Once ');
        await before.stop();
        const chat = chatOf(stage, { messages: await historyOf(stage) });
        const resumed = chat.resumeStream();
        await chat.shows('Once ');
        stage.held.say('more.');
        stage.held.end();
        await resumed;
        await isWell(chat, 'Once more.', 4);
        const answersIn = (all: readonly UIMessage[]) =>
          all.filter(({ role }) => role === 'assistant').map(({ id }) => id);
        same(answersIn(chat.messages), answersIn(before.messages));
        return 'history, resumeStream';
      },
    },
  };
};
