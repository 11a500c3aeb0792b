// Clients of each protocol that bring the result of a suspended tool call.
import {
  type Agent,
  createAgent,
  type Message,
  type ModelChunk,
  type ResultSource,
  suspend,
  type Tool,
  tool,
} from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions, type SessionState } from 'millrace/sessions';
import { agentTool } from 'millrace/teams';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import {
  defer,
  EMPTY,
  firstValueFrom,
  lastValueFrom,
  ReplaySubject,
  Subject,
  takeWhile,
  toArray,
} from 'rxjs';
import { agUi } from './ag-ui/index.js';
import { chatServer, type ChatServer } from './chat/index.js';
import { fieldOf } from './inbound.js';
import { openAi } from './openai/index.js';
import { answerSocket$ } from './web-socket/index.js';

/** Something that waits for a result: who may bring it, and the tool calls of the model. */
export interface Kind {
  readonly from: ResultSource;
  readonly tools?: () => readonly Tool[];
  readonly asks: readonly ModelChunk[];
}

export const waiting = (from?: ResultSource): Tool =>
  tool({
    name: 'wait',
    description: 'Waits.',
    run: () => suspend({ secret: 'who decides' }, from === undefined ? {} : { from }),
  });

/** A sub-agent whose tool waits: an `approveLater` tool is one. */
export const below = (from: ResultSource): Tool =>
  agentTool(
    createAgent({
      name: 'desk',
      model: scriptedModel([toolCall('wait', {}, 'w')], [text('Done.')], [text('Done.')]),
      tools: [waiting(from)],
    }),
    { description: 'Has it done.' },
  );

const action = (from?: ResultSource): readonly ModelChunk[] => [
  {
    ...{ type: 'toolCall', id: 'v', name: 'shell', json: '{}' },
    suspends: { request: { secret: 'of the vendor' }, ...(from !== undefined && { from }) },
  },
];

export const kinds: Readonly<Record<string, Kind>> = {
  'a tool that suspends': {
    from: 'client',
    tools: () => [waiting()],
    asks: [toolCall('wait', {}, 'w')],
  },
  'a tool that suspends for the client': {
    from: 'client',
    tools: () => [waiting('client')],
    asks: [toolCall('wait', {}, 'w')],
  },
  'a tool that suspends for the program': {
    from: 'program',
    tools: () => [waiting('program')],
    asks: [toolCall('wait', {}, 'w')],
  },
  'a tool of a sub-agent that suspends for the program': {
    from: 'program',
    tools: () => [below('program')],
    asks: [toolCall('desk', { user_prompt: 'Do it.' }, 'd')],
  },
  'an action of the vendor': { from: 'program', asks: action() },
  'an action of the vendor for the client': { from: 'client', asks: action('client') },
};

const servers: ChatServer[] = [];

/** Closes all servers. */
export const closeServers = () =>
  Promise.all(servers.splice(0).map((server) => server.close({ timeoutMs: 0 })));

export const storeOf = () => ({
  calls: createCallStore(inProcessCalls()),
  sessions: inProcessSessions(),
});
export type Store = ReturnType<typeof storeOf>;

export const serving = (store: Store, agent: Agent): Server => {
  const server = chatServer(agent, { store, protocols: [agUi(), openAi()], onError: () => '' });
  servers.push(server);
  const send = async (path: string, body?: object) => {
    const response = await server.respond(
      new Request(`http://localhost${path}`, {
        headers: { 'content-type': 'application/json' },
        ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
      }),
    );
    return { status: response.status, body: await response.text() };
  };
  return { server, send };
};

export interface Server {
  readonly server: ChatServer;
  readonly send: (path: string, body?: object) => Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** A client of one protocol. */
export interface Client {
  readonly ask: (server: Server) => Promise<Answer>;
  /** What shows to the client that it should bring a result. */
  readonly invitation: RegExp;
  /** Brings a result, whether the server has shown the tool call or not. */
  readonly bring: (server: Server, id: string, asked: Answer, value?: string) => Promise<Answer>;
  readonly sessionOf: (asked: Answer) => string;
}

export const question = { id: 'q', role: 'user', parts: [{ type: 'text', text: 'Do it.' }] };
export const resultOf = (localId: string, output: string, message = 'm') => {
  const toolCallId = `${message}/${localId}`;
  const parts = [
    { type: 'step-start' },
    { type: 'tool-wait', toolCallId, state: 'output-available', output },
    { type: 'data-suspended', data: { toolCallId, toolName: 'wait', localId } },
  ];
  return [question, { id: message, role: 'assistant', parts }];
};

const history = async ({ send }: Server, { status, body }: Answer): Promise<Answer> => ({
  status,
  body: body + (await send('/api/chat/a')).body,
});

const agUiBody = (runId: string, ...messages: readonly object[]) => ({
  ...{ threadId: 'a', runId, messages, tools: [], context: [], state: {}, forwardedProps: {} },
});

const output = (id: string, value: string) => [
  { type: 'function_call_output', call_id: id, output: value },
];
const fieldIn = ({ body }: Answer, ...path: readonly string[]): string =>
  String(path.reduce((value, name) => fieldOf(value, name), JSON.parse(body) as unknown));

/** One request over the socket of a server, and its answer. An error frame has no status. */
const overSocket = async ({ server }: Server, messages: readonly object[]): Promise<Answer> => {
  const message$ = new Subject<unknown>();
  const frame$ = new ReplaySubject<string>(Infinity);
  const handshake = new Request('http://localhost/api/chat');
  const socket = {
    message$,
    close: () => undefined,
    send$: (frame: string) =>
      defer(() => {
        frame$.next(frame);
        return EMPTY;
      }),
  };
  const open = answerSocket$(socket, handshake, server).subscribe();
  const frame = { type: 'send', requestId: 'r', id: 'a', trigger: 'submit-message' };
  message$.next(JSON.stringify({ ...frame, messages, headers: {}, body: {} }));
  const isLast = (it: string): boolean => /"type":"(?:end|done|error)"/u.test(it);
  const frames = await lastValueFrom(
    frame$.pipe(
      takeWhile((it) => !isLast(it), true),
      toArray(),
    ),
  );
  open.unsubscribe();
  return { status: frames.at(-1)?.includes('"error"') === true ? 409 : 200, body: frames.join('') };
};

/** The id of the message that a client shows. */
const messageIn = ({ body }: Answer): string =>
  /\\?"(?:parentMessageId|messageId)\\?":\\?"([^"\\]+)/u.exec(body)?.[1] ?? 'm';

export const protocols: Readonly<Record<string, Client>> = {
  'the AI SDK': {
    ask: async (server) =>
      history(server, await server.send('/api/chat', { id: 'a', messages: [question] })),
    invitation: /data-suspended/u,
    bring: ({ send }, id, asked, value = 'true') =>
      send('/api/chat', { id: 'a', messages: resultOf(id, value, messageIn(asked)) }),
    sessionOf: () => 'a',
  },
  'the AI SDK over a WebSocket': {
    ask: async (server) => history(server, await overSocket(server, [question])),
    invitation: /data-suspended/u,
    bring: (server, id, asked, value = 'true') =>
      overSocket(server, resultOf(id, value, messageIn(asked))),
    sessionOf: () => 'a',
  },
  'AG-UI': {
    ask: ({ send }) =>
      send('/api/ag-ui', agUiBody('r1', { id: 'q', role: 'user', content: 'Do it.' })),
    invitation: /millrace\.suspended|pendingToolCallIds/u,
    bring: ({ send }, id, asked, value = 'true') => {
      const message = messageIn(asked);
      const made = {
        id: `${message}/${id}`,
        type: 'function',
        function: { name: 'wait', arguments: '{}' },
      };
      return send(
        '/api/ag-ui',
        agUiBody(
          crypto.randomUUID(),
          { id: 'q', role: 'user', content: 'Do it.' },
          { id: message, role: 'assistant', toolCalls: [made] },
          { id: 't', role: 'tool', toolCallId: made.id, content: value },
        ),
      );
    },
    sessionOf: () => 'a',
  },
  'the Responses API': {
    ask: ({ send }) => send('/v1/responses', { model: 'h', input: 'Do it.' }),
    invitation: /function_call/u,
    bring: ({ send }, id, asked, value = 'true') =>
      send('/v1/responses', {
        ...{ model: 'h', input: output(id, value) },
        previous_response_id: fieldIn(asked, 'id'),
      }),
    sessionOf: (asked) => fieldIn(asked, 'conversation', 'id'),
  },
  'the Responses API, with a conversation': {
    ask: ({ send }) => send('/v1/responses', { model: 'h', input: 'Do it.', conversation: 'a' }),
    invitation: /function_call/u,
    bring: ({ send }, id, _, value = 'true') =>
      send('/v1/responses', { model: 'h', input: output(id, value), conversation: 'a' }),
    sessionOf: () => 'a',
  },
};

export const stored = async ({ sessions }: Store, id: string): Promise<readonly Message[]> => {
  const found = await firstValueFrom(sessions.load$(id));
  // It was saved by this version.
  return (found?.state as SessionState | undefined)?.messages ?? [];
};
