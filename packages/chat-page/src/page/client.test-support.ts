import type { Agent, ModelChunk } from 'millrace';
import { chatServer, type ChatServer, type ChatServerOptions } from '@millrace/server/chat';
import {
  BehaviorSubject,
  filter,
  firstValueFrom,
  from,
  type Observable,
  of,
  ReplaySubject,
  Subject,
  type Subscription,
  take,
} from 'rxjs';
import { conversation$ } from './conversation.js';
import type { Command, Conversation } from './conversation-state.js';
import { textPart } from './requests.js';
import { createServer } from './server.js';
import { plainTextOf, type UiMessage } from './ui-message.js';
import type { Unsent } from './unsent.js';

/** A model that answers piece by piece, until it is ended. */
export const held = () => {
  const piece$ = new ReplaySubject<ModelChunk>(Infinity);
  return {
    say: (text: string) => piece$.next({ type: 'text', text }),
    end: () => {
      piece$.next({ type: 'finish', finish: 'stop' });
      piece$.complete();
    },
    answer: () => piece$,
  };
};

/** The network between a page and its server. */
export interface Network {
  server: ChatServer;
  /** Ends the streams that are open, without their last event. */
  readonly cut: () => void;
  /** `proxy`: only the proxy in front of the server answers. `answers`: requests arrive, and their answers are lost. */
  isDown: boolean | 'proxy' | 'answers';
  readonly requests: string[];
  /** The ids of the questions that have arrived. */
  readonly asked: string[];
  /** The event streams that are open. */
  readonly open$: BehaviorSubject<readonly string[]>;
}

const servers: ChatServer[] = [];
const pages: Subscription[] = [];

/** Closes the pages and the servers. */
export const closeAll = async (): Promise<void> => {
  for (const page of pages.splice(0)) page.unsubscribe();
  await Promise.all(servers.splice(0).map((server) => server.close({ timeoutMs: 0 })));
};

export const networkTo = (agent: Agent, options: ChatServerOptions = {}): Network => {
  const create = () => {
    const server = chatServer(agent, options);
    servers.push(server);
    return server;
  };
  const cut$ = new Subject<void>();
  const network: Network = {
    server: create(),
    cut: () => {
      cut$.next();
    },
    isDown: false,
    requests: [],
    asked: [],
    open$: new BehaviorSubject<readonly string[]>([]),
  };
  globalThis.fetch = async (input, init) => {
    const path = String(input);
    network.requests.push(`${init?.method ?? 'GET'} ${path}`);
    if (network.isDown === 'proxy') return new Response('<h1>Bad gateway</h1>', { status: 502 });
    if (network.isDown === true) throw new TypeError('fetch failed');
    if (path.startsWith('/api/chat?') && init?.method === 'POST') {
      const { messages } = JSON.parse(String(init?.body)) as { messages: { id: string }[] };
      network.asked.push(messages.at(-1)?.id ?? '');
    }
    const response = await network.server.respond(new Request(`http://localhost${path}`, init));
    if (network.isDown === 'answers') throw new TypeError('network error');
    if (response.body === null) return response;
    const { open$ } = network;
    const line = [`${init?.method ?? 'GET'} ${path}`];
    const close = () => {
      if (open$.value.includes(line[0] ?? ''))
        open$.next(open$.value.filter((it) => it !== line[0]));
    };
    if (response.headers.get('content-type')?.startsWith('text/event-stream') === true) {
      init?.signal?.addEventListener('abort', close);
      if (init?.signal?.aborted !== true) open$.next(open$.value.concat(line));
    }
    return new Response(
      response.body.pipeThrough(
        new TransformStream({
          flush: close,
          start: (controller) => {
            cut$.pipe(take(1)).subscribe(() => {
              controller.error(new TypeError('network error'));
            });
          },
        }),
      ),
      response,
    );
  };
  return network;
};

/** The next turn of the event loop: microtasks alone would keep the server from answering. */
const soon$ = () => from(new Promise((resolve) => setImmediate(resolve)));

/** What a tab keeps: pages with the same one are reloads of it. */
export const tabOf = () => new Map<string, readonly Unsent[]>();

/** A page with a conversation. */
export const pageOf = (id = 'a', tab = tabOf(), isVisible$: Observable<boolean> = of(true)) => {
  const command$ = new Subject<Command>();
  const states: Conversation[] = [];
  const state$ = new ReplaySubject<Conversation>(1);
  let last = 0;
  const name = pages.length === 0 ? '' : `${pages.length}`;
  const server = createServer({ api: '/api', wait$: soon$ });
  const subscription: Subscription = conversation$(
    id,
    {
      server,
      isVisible$,
      newId: () => `${name}q${(last += 1)}`,
      drafts: {
        read: (of) => tab.get(of) ?? [],
        write: (of, unsent) => void tab.set(of, unsent),
      },
    },
    command$,
  ).subscribe((state) => {
    states.push(state);
    state$.next(state);
  });
  pages.push(subscription);
  const until = (isIt: (state: Conversation) => boolean): Promise<Conversation> =>
    firstValueFrom(state$.pipe(filter(isIt)));
  return {
    server,
    states,
    until,
    send: (command: Command) => {
      command$.next(command);
    },
    begin: (text: string) => {
      command$.next({ type: 'ask', parts: [textPart(text)] });
    },
    /** Sends the unsent message of a state again. */
    retry: ({ unsent: [message] }: Conversation) => {
      command$.next({ type: 'retry', messageId: message?.id ?? '' });
    },
    ready: () => until(({ status }) => status === 'ready'),
    ask: async (text: string): Promise<Conversation> => {
      await until(({ status }) => status === 'ready');
      command$.next({ type: 'ask', parts: [textPart(text)] });
      return until(({ status }) => status === 'ready');
    },
    /** Waits until the text of the last message contains this. */
    shows: (text: string) =>
      until(({ messages }) => plainTextOf(messages.at(-1) ?? nothing).includes(text)),
    close: () => {
      subscription.unsubscribe();
    },
  };
};

const nothing: UiMessage = { id: '', role: 'user', parts: [] };

/** A line for each message of the server. */
export const linesOf = ({ messages }: Pick<Conversation, 'messages'>): readonly string[] =>
  messages.map((message) => `${message.role}: ${plainTextOf(message)}`);

/** The text of each message that the server is not known to have. */
export const unsentOf = ({ unsent }: Pick<Conversation, 'unsent'>): readonly string[] =>
  unsent.map(plainTextOf);
