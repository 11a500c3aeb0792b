import { HttpAgent, type Message } from '@ag-ui/client';
import { describe, expect, it } from '@jest/globals';
import {
  type AgentEvent,
  createAgent,
  inProcessMemory,
  MillraceError,
  on,
  suspend,
  suspensionsIn,
  tool,
  type Use,
} from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { sessions } from 'millrace/sessions';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithToolCalls } from 'ai';
import { Hono } from 'hono';
import { firstValueFrom, lastValueFrom, map, type Observable, of, takeWhile, toArray } from 'rxjs';
import { Chat } from './chat/real-client.test-support.js';
import { chunkComplaints } from './check-chunks.test-support.js';
import {
  agUiResponse,
  inputOfAgUi,
  inputOfUiMessages,
  toAgUi,
  toUiMessageStream,
  uiMessageStreamResponse,
} from './index.js';
import {
  complaintsOf,
  installed,
  isValidMessage,
  linesOf,
  readAsAiSdk,
} from './read-as-client.test-support.js';

const all = <T>(value$: Observable<T>): Promise<readonly T[]> =>
  lastValueFrom(value$.pipe(toArray()));

const where = tool({
  name: 'where',
  description: 'Asks the browser where the user is.',
  input: jsonSchema({ type: 'object', properties: { precise: { type: 'boolean' } } }),
  run: ({ precise }) => suspend({ precise }),
});
const look = tool({ name: 'look', description: 'Looks.', run: () => 'seen' });

/** A server whose agent has a tool that the client runs. */
const serverOf = (...answers: readonly ScriptedAnswer[]) => {
  const model = scriptedModel(...answers);
  const memory = inProcessMemory();
  const chats = sessions(createAgent({ model, tools: [where, look] }), { memory });
  const errors: MillraceError[] = [];
  const onError = (error: MillraceError): void => void errors.push(error);
  const bodies: string[] = [];
  const app = new Hono();
  app.post('/chat', async ({ req }) => {
    const { input, chatId, ...message } = inputOfUiMessages(await req.json());
    return uiMessageStreamResponse(
      (demand) =>
        chats.open(chatId).stream$(input, { demand, callId: `c${model.requests.length}` }),
      { ...message, target: await installed(), onError },
    );
  });
  app.post('/ag-ui', async ({ req }) => {
    const { input, ...run } = inputOfAgUi(await req.json());
    return agUiResponse(
      (demand) =>
        chats.open(run.threadId).stream$(input, { demand, callId: `c${model.requests.length}` }),
      { ...run, onError },
    );
  });
  const fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const response = await app.request(url, init);
    const [mine, theirs] = response.body?.tee() ?? [];
    bodies.push(await new Response(mine).text());
    return new Response(theirs, response);
  };
  return {
    model,
    errors,
    bodies,
    fetch,
    suspensions: async (id: string) => suspensionsIn(await firstValueFrom(memory(id).load$())),
  };
};

/** Runs the tool in the client. */
type RunsTool = (chat: Chat, toolCallId: string) => unknown;

/** Asks a question, and goes on until the client has nothing to send any more. */
const chatted = async (
  { fetch }: ReturnType<typeof serverOf>,
  { during, after }: { readonly during?: RunsTool; readonly after?: RunsTool } = {},
): Promise<Chat> => {
  const chat = new Chat({
    id: 'chat-1',
    transport: new DefaultChatTransport({ api: 'http://127.0.0.1/chat', fetch }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    onToolCall: ({ toolCall: { toolName, toolCallId } }) => {
      if (toolName === 'where') void during?.(chat, toolCallId);
    },
  });
  await chat.sendMessage({ text: 'Where am I?' });
  for (const part of chat.messages.flatMap(({ parts }) => parts)) {
    if (part.type !== 'tool-where' || !('toolCallId' in part)) continue;
    await after?.(chat, part.toolCallId);
    // What it sends by itself is not waited for.
    do await new Promise(setImmediate);
    while (chat.status === 'submitted' || chat.status === 'streaming');
  }
  return chat;
};

/** What the chat shows of its one answer. */
const shownIn = async ({ messages }: Chat): Promise<readonly string[]> => {
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  const [, message] = messages;
  if (message === undefined) throw new Error('There is no answer.');
  expect(await isValidMessage(message)).toBe(true);
  return linesOf(message).filter((line) => !line.startsWith('data-'));
};

const asksWhere = [text('I look. '), toolCall('where', { precise: true }, 'w')] as const;

describe('T13: a suspended tool, in a chat of the AI SDK', () => {
  it('has no output, so the client can run it', async () => {
    const server = serverOf([...asksWhere, toolCall('look', {}, 'l')]);
    expect(await shownIn(await chatted(server))).toEqual([
      'step-start',
      'text: I look. ',
      'where {"precise":true} input-available: undefined',
      'look {} output-available: "seen"',
    ]);
    expect(server.bodies).toHaveLength(1);
    expect(server.bodies[0]).toContain('"finishReason":"tool-calls"');
  });

  it('continues in the same message when the client adds its output', async () => {
    const server = serverOf(
      [...asksWhere, toolCall('look', {}, 'l')],
      [text('In Oslo.')],
      [text('Bye.')],
    );
    const chat = await chatted(server, {
      after: (it, toolCallId) =>
        it.addToolOutput({ tool: 'where', toolCallId, output: { city: 'Oslo' } }),
    });
    expect(server.errors).toEqual([]);
    expect(await shownIn(chat)).toEqual([
      'step-start',
      'text: I look. ',
      'where {"precise":true} output-available: {"city":"Oslo"}',
      'look {} output-available: "seen"',
      'step-start',
      'text: In Oslo.',
    ]);
    expect(server.model.requests[1]?.messages.at(-1)?.content).toMatchObject([
      { toolCallId: 'w', isError: false, content: [{ text: '{"city":"Oslo"}' }] },
      { toolCallId: 'l', content: [{ text: 'seen' }] },
    ]);
    expect(await server.suspensions('chat-1')).toEqual([]);
    // And the chat is an ordinary one again.
    await chat.sendMessage({ text: 'Thanks.' });
    expect(server.errors).toEqual([]);
    expect(chat.messages).toHaveLength(4);
  });

  it('continues when the client runs it automatically, any number of times', async () => {
    const server = serverOf(
      asksWhere,
      [text('And now? '), toolCall('where', {}, 'v')],
      [text('You moved.')],
    );
    let runs = 0;
    const chat = await chatted(server, {
      during: (it, toolCallId) => {
        runs += 1;
        return it.addToolOutput({ tool: 'where', toolCallId, output: `place ${runs}` });
      },
    });
    expect(server.errors).toEqual([]);
    expect(await shownIn(chat)).toEqual([
      'step-start',
      'text: I look. ',
      'where {"precise":true} output-available: "place 1"',
      'step-start',
      'text: And now? ',
      'where {} output-available: "place 2"',
      'step-start',
      'text: You moved.',
    ]);
    expect(server.bodies).toHaveLength(3);
  });

  it('may fail in the client', async () => {
    const server = serverOf(asksWhere, [text('Never mind.')]);
    await chatted(server, {
      after: (it, toolCallId) =>
        it.addToolOutput({
          ...{ tool: 'where', toolCallId, state: 'output-error' },
          errorText: 'No permission.',
        }),
    });
    expect(server.model.requests[1]?.messages.at(-1)?.content).toMatchObject([
      { toolCallId: 'w', isError: true, content: [{ text: 'No permission.' }] },
    ]);
  });

  it('can be tried again when the call that has its output fails', async () => {
    const failing = () => {
      throw new MillraceError('server', 'out of order');
    };
    const server = serverOf(asksWhere, failing, [text('In Oslo.')]);
    const chat = await chatted(server, {
      after: (it, toolCallId) => it.addToolOutput({ tool: 'where', toolCallId, output: 'Oslo' }),
    });
    expect(chat.status).toBe('error');
    expect(server.errors).toMatchObject([{ code: 'server' }]);
    await chat.sendMessage();
    expect(server.errors).toHaveLength(1);
    expect((await shownIn(chat)).slice(-2)).toEqual(['step-start', 'text: In Oslo.']);
  });

  it('is refused with a typed error when its result comes twice', async () => {
    const server = serverOf(asksWhere, [text('In Oslo.')]);
    const chat = await chatted(server);
    const [, message] = chat.messages;
    const part = message?.parts.find(({ type }) => type === 'tool-where');
    const answered = { ...message, parts: [] as unknown[] };
    answered.parts = (message?.parts ?? []).map((it) =>
      it === part ? { ...it, state: 'output-available', output: 'Oslo' } : it,
    );
    const body = JSON.stringify({ id: 'chat-1', messages: [answered] });
    for (const _ of ['once', 'twice']) {
      await server.fetch('http://127.0.0.1/chat', { method: 'POST', body });
    }
    expect(server.bodies.at(-2)).toContain('In Oslo.');
    expect(server.bodies.at(-1)).toContain('"code":"invalidResume"');
    expect(server.errors).toMatchObject([{ code: 'invalidResume' }]);
  });
});

describe('T13: a suspended tool, in a client of AG-UI', () => {
  const clientOf = ({ fetch }: ReturnType<typeof serverOf>) =>
    new HttpAgent({
      url: 'http://127.0.0.1/ag-ui',
      threadId: 'thread-1',
      fetch,
      initialMessages: [{ id: '1', role: 'user', content: 'Where am I?' }],
    });
  const said = ({ messages }: HttpAgent) =>
    messages.map((message: Message) => [message.role, message.content ?? '']);

  it('has no result, and continues when the client adds a message with it', async () => {
    const server = serverOf([...asksWhere, toolCall('look', {}, 'l')], [text('In Oslo.')]);
    const client = clientOf(server);
    await client.runAgent();
    expect(server.bodies[0]).not.toContain('c0/1/w/result');
    expect(said(client)).toEqual([
      ['user', 'Where am I?'],
      ['assistant', 'I look. '],
      ['tool', 'seen'],
    ]);
    client.addMessage({ id: 'r', role: 'tool', toolCallId: 'c0/1/w', content: 'Oslo' });
    await client.runAgent();
    expect(server.errors).toEqual([]);
    expect(said(client).slice(3)).toEqual([
      ['tool', 'Oslo'],
      ['assistant', 'In Oslo.'],
    ]);
    expect(server.model.requests[1]?.messages.at(-1)?.content).toMatchObject([
      { toolCallId: 'w', isError: false, content: [{ text: 'Oslo' }] },
      { toolCallId: 'l', content: [{ text: 'seen' }] },
    ]);
    expect(await server.suspensions('thread-1')).toEqual([]);
  });

  it('may fail in the client', async () => {
    const server = serverOf(asksWhere, [text('Never mind.')]);
    const client = clientOf(server);
    await client.runAgent();
    const result = { id: 'r', role: 'tool', toolCallId: 'c0/1/w' } as const;
    client.addMessage({ ...result, content: 'Half.', error: 'No permission.' });
    await client.runAgent();
    expect(server.model.requests[1]?.messages.at(-1)?.content).toMatchObject([
      { toolCallId: 'w', isError: true, content: [{ text: 'Half.\nNo permission.' }] },
    ]);
  });
});

describe('T13: a suspended tool whose call does not end as suspended', () => {
  const event$ = (use: Use = []): Observable<AgentEvent> =>
    sessions(createAgent({ model: scriptedModel(asksWhere), tools: [where], use }))
      .open('s')
      .stream$('?', { callId: 'c' });
  const fails = on(
    'postCall',
    map(() => {
      throw new Error('no');
    }),
  );

  it.each([
    ['fails', () => event$([fails])],
    ['is cut', () => event$().pipe(takeWhile(({ type }) => type !== 'postCall'))],
  ])('has not been run: the call %s', async (_, open) => {
    const chunks = await all(open().pipe(toUiMessageStream()));
    expect(chunkComplaints(chunks)).toEqual([]);
    expect(chunks).toContainEqual({
      ...{ type: 'tool-output-error', toolCallId: 'c/1/w' },
      errorText: 'The tool was not run.',
    });
    const events = await all(open().pipe(toAgUi()));
    expect(complaintsOf(events)).toEqual([]);
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'TOOL_CALL_RESULT', toolCallId: 'c/1/w' }),
    );
  });

  it('shows no progress as its output', async () => {
    const slow = tool({
      name: 'slow',
      description: 'Tells how far it is, and suspends.',
      run: () => of('half', suspend()),
    });
    const chunks = await all(
      createAgent({ model: scriptedModel([toolCall('slow', {}, 's')]), tools: [slow] })
        .stream$('?', { callId: 'c' })
        .pipe(toUiMessageStream()),
    );
    expect(chunks.filter(({ type }) => type.startsWith('tool-')).slice(-3)).toMatchObject([
      { type: 'tool-input-available', input: {} },
      { type: 'tool-output-available', output: 'half', preliminary: true },
      { type: 'tool-input-available', input: {} },
    ]);
    const { message } = await readAsAiSdk(chunks);
    expect(linesOf(message)[1]).toBe('slow {} input-available: undefined');
  });
});
