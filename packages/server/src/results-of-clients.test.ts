import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type Agent,
  createAgent,
  type Message,
  type ModelChunk,
  type ResultSource,
  suspend,
  suspensionsIn,
  type Tool,
  tool,
  toolResults,
} from 'millrace';
import { createCallStore, inProcessCalls, journal, suspendBelow } from 'millrace/journal';
import { inProcessSessions, keepSessions, type SessionState } from 'millrace/sessions';
import { agentTool } from 'millrace/teams';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
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
interface Kind {
  readonly from: ResultSource;
  readonly tools?: () => readonly Tool[];
  readonly asks: readonly ModelChunk[];
}

const waiting = (from?: ResultSource): Tool =>
  tool({
    name: 'wait',
    description: 'Waits.',
    run: () => suspend({ secret: 'who decides' }, from === undefined ? {} : { from }),
  });

/** A sub-agent whose tool waits: an `approveLater` tool is one. */
const below = (from: ResultSource): Tool =>
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

const kinds: Readonly<Record<string, Kind>> = {
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
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close({ timeoutMs: 0 }))));

const storeOf = () => ({ calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() });
type Store = ReturnType<typeof storeOf>;

const serving = (store: Store, agent: Agent): Server => {
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

interface Server {
  readonly server: ChatServer;
  readonly send: (path: string, body?: object) => Promise<Answer>;
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** A client of one protocol. */
interface Client {
  readonly ask: (server: Server) => Promise<Answer>;
  /** What shows to the client that it should bring a result. */
  readonly invitation: RegExp;
  /** Brings a result, whether the server has shown the tool call or not. */
  readonly bring: (server: Server, id: string, asked: Answer) => Promise<Answer>;
  readonly sessionOf: (asked: Answer) => string;
}

const question = { id: 'q', role: 'user', parts: [{ type: 'text', text: 'Do it.' }] };
const resultOf = (localId: string) => {
  const toolCallId = `m/${localId}`;
  const parts = [
    { type: 'step-start' },
    { type: 'tool-wait', toolCallId, state: 'output-available', output: 'true' },
    { type: 'data-suspended', data: { toolCallId, toolName: 'wait', localId } },
  ];
  return [question, { id: 'm', role: 'assistant', parts }];
};

const history = async ({ send }: Server, { status, body }: Answer): Promise<Answer> => ({
  status,
  body: body + (await send('/api/chat/a')).body,
});

const agUiBody = (runId: string, ...messages: readonly object[]) => ({
  ...{ threadId: 'a', runId, messages, tools: [], context: [], state: {}, forwardedProps: {} },
});

const output = (id: string) => [{ type: 'function_call_output', call_id: id, output: 'true' }];
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

const clients: Readonly<Record<string, Client>> = {
  'the AI SDK': {
    ask: async (server) =>
      history(server, await server.send('/api/chat', { id: 'a', messages: [question] })),
    invitation: /data-suspended/u,
    bring: ({ send }, id) => send('/api/chat', { id: 'a', messages: resultOf(id) }),
    sessionOf: () => 'a',
  },
  'the AI SDK over a WebSocket': {
    ask: async (server) => history(server, await overSocket(server, [question])),
    invitation: /data-suspended/u,
    bring: (server, id) => overSocket(server, resultOf(id)),
    sessionOf: () => 'a',
  },
  'AG-UI': {
    ask: ({ send }) =>
      send('/api/ag-ui', agUiBody('r1', { id: 'q', role: 'user', content: 'Do it.' })),
    invitation: /millrace\.suspended|pendingToolCallIds/u,
    bring: ({ send }, id) => {
      const made = { id: `m/${id}`, type: 'function', function: { name: 'wait', arguments: '{}' } };
      return send(
        '/api/ag-ui',
        agUiBody(
          'r2',
          { id: 'q', role: 'user', content: 'Do it.' },
          { id: 'm', role: 'assistant', toolCalls: [made] },
          { id: 't', role: 'tool', toolCallId: `m/${id}`, content: 'true' },
        ),
      );
    },
    sessionOf: () => 'a',
  },
  'the Responses API': {
    ask: ({ send }) => send('/v1/responses', { model: 'h', input: 'Do it.' }),
    invitation: /function_call/u,
    bring: ({ send }, id, asked) =>
      send('/v1/responses', {
        ...{ model: 'h', input: output(id) },
        previous_response_id: fieldIn(asked, 'id'),
      }),
    sessionOf: (asked) => fieldIn(asked, 'conversation', 'id'),
  },
  'the Responses API, with a conversation': {
    ask: ({ send }) => send('/v1/responses', { model: 'h', input: 'Do it.', conversation: 'a' }),
    invitation: /function_call/u,
    bring: ({ send }, id) =>
      send('/v1/responses', { model: 'h', input: output(id), conversation: 'a' }),
    sessionOf: () => 'a',
  },
};

const script = ({ asks }: Kind, ...rest: readonly ScriptedAnswer[]) =>
  scriptedModel(asks, ...rest, [text('It is done.')], [text('It is done.')]);

const agentOf = (kind: Kind) =>
  createAgent({
    name: 'h',
    model: script(kind),
    tools: kind.tools?.() ?? [],
    use: [suspendBelow],
  });

const stored = async ({ sessions }: Store, id: string): Promise<readonly Message[]> => {
  const found = await firstValueFrom(sessions.load$(id));
  // It was saved by this version.
  return (found?.state as SessionState | undefined)?.messages ?? [];
};

const kindNamed = (name: string): Kind => {
  const kind = kinds[name];
  if (kind === undefined) throw new Error(`There is no kind '${name}'.`);
  return kind;
};

const rows = Object.entries(clients).flatMap(([protocol, client]) =>
  Object.entries(kinds).map(([what, kind]) => ({ protocol, what, client, kind })),
);

describe('T13: the result of a suspended tool call, from a client', () => {
  it.each(rows.filter(({ kind }) => kind.from === 'client'))(
    '$protocol: $what is shown to it, and its result is taken',
    async ({ client, kind }) => {
      const store = storeOf();
      const server = serving(store, agentOf(kind));
      const asked = await client.ask(server);
      expect(asked.body).toMatch(client.invitation);
      const session = client.sessionOf(asked);
      const [waits] = suspensionsIn(await stored(store, session));
      expect(waits?.from).toBe('client');
      const answer = await client.bring(server, waits?.toolCall.id ?? '', asked);
      expect([answer.status, answer.body]).toEqual([200, expect.stringContaining('It is done.')]);
      const messages = await stored(store, session);
      // Who brought it is kept.
      const results = messages.flatMap(({ role, content }) => (role === 'tool' ? content : []));
      expect(results.map((block) => fieldOf(block, 'from'))).toContain('client');
      expect(suspensionsIn(messages)).toEqual([]);
    },
  );

  it.each(rows.filter(({ kind }) => kind.from === 'program'))(
    '$protocol: $what is not shown to it, and its result is a 409 that changes nothing',
    async ({ client, kind }) => {
      const store = storeOf();
      const agent = agentOf(kind);
      const server = serving(store, agent);
      const asked = await client.ask(server);
      expect(asked.status).toBe(200);
      expect(asked.body).not.toMatch(client.invitation);
      expect(asked.body).not.toContain('secret');
      const session = client.sessionOf(asked);
      const before = await stored(store, session);
      const [waits] = suspensionsIn(before);
      expect(waits?.from).toBe('program');
      const id = waits?.toolCall.id ?? '';
      const answer = await client.bring(server, id, asked);
      expect([answer.status, answer.body]).toEqual([409, expect.not.stringContaining('secret')]);
      expect(await stored(store, session)).toEqual(before);
      // The program brings it, in another process.
      await server.server.close();
      const kept = keepSessions(agent, store.sessions, { journal: journal(store.calls) });
      const opened = await kept.open(session);
      expect(await opened.call(toolResults({ [id]: 'Yes.' }))).toMatchObject({
        text: 'It is done.',
      });
    },
  );

  const both: Kind = {
    from: 'client',
    tools: () => [waiting(), { ...waiting('program'), name: 'decide' }, below('program')],
    asks: [
      toolCall('wait', {}, 'w'),
      toolCall('decide', {}, 'p'),
      toolCall('desk', { user_prompt: 'Do it.' }, 'd'),
    ],
  };

  it.each(Object.entries(clients))(
    '%s: is taken beside a tool call that waits for the program, in either order',
    async (_, client) => {
      for (const first of ['client', 'program']) {
        const store = storeOf();
        const agent = agentOf(both);
        const server = serving(store, agent);
        const asked = await client.ask(server);
        const session = client.sessionOf(asked);
        const waits = suspensionsIn(await stored(store, session));
        expect(waits.map(({ toolCall: { id }, from }) => [id, from])).toEqual([
          ['w', 'client'],
          ['p', 'program'],
          ['d/w', 'program'],
        ]);
        const ofProgram = async (it: Store): Promise<string> => {
          const kept = keepSessions(agent, it.sessions, { journal: journal(it.calls) });
          const opened = await kept.open(session);
          const reply = await opened.call(toolResults({ p: 'Yes.', 'd/w': 'Yes.' }));
          await opened.close();
          return `${reply.reason} ${reply.text}`;
        };
        if (first === 'client') {
          expect((await client.bring(server, 'w', asked)).status).toBe(200);
          expect(suspensionsIn(await stored(store, session))).toMatchObject(waits.slice(1));
          await server.server.close();
          expect(await ofProgram(store)).toBe('answer It is done.');
        } else {
          await server.server.close();
          expect(await ofProgram(store)).toBe('suspended ');
          const next = serving(store, agent);
          const answer = await client.bring(next, 'w', asked);
          expect([answer.status, answer.body]).toEqual([
            200,
            expect.stringContaining('It is done.'),
          ]);
          await next.server.close();
        }
        expect(suspensionsIn(await stored(store, session))).toEqual([]);
      }
    },
  );

  it.each([false, true])(
    'a completion that waits for the program is an error, since nothing could continue it (stream: %s)',
    async (stream) => {
      const { send } = serving(
        storeOf(),
        agentOf(kindNamed('a tool that suspends for the program')),
      );
      const messages = [{ role: 'user', content: 'Do it.' }];
      const { status, body } = await send('/v1/chat/completions', { model: 'h', messages, stream });
      expect(status).toBe(stream ? 200 : 409);
      expect(body).toContain('waits for a decision');
      expect(body).not.toMatch(/tool_calls|secret/u);
    },
  );

  it('is refused by the call itself, if another call is running when it comes', async () => {
    const asks$ = new Subject<ModelChunk>();
    const agent = createAgent({
      name: 'h',
      model: scriptedModel(() => asks$, [text('It is done.')]),
      tools: [waiting('program')],
    });
    const store = storeOf();
    const server = serving(store, agent);
    const asked = server.send('/api/chat', { id: 'a', messages: [question] });
    while (!asks$.observed) await new Promise(setImmediate);
    const forged = server.send('/api/chat', { id: 'a', messages: resultOf('w') });
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    asks$.next(toolCall('wait', {}, 'w'));
    asks$.next({ type: 'finish', finish: 'stop' });
    asks$.complete();
    await asked;
    expect((await forged).body).toContain('"code":"invalidResume"');
    expect(suspensionsIn(await stored(store, 'a'))).toHaveLength(1);
  });
});
