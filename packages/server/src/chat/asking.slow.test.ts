import { HttpAgent, type Interrupt } from '@ag-ui/client';
import { afterEach, describe, expect, it } from '@jest/globals';
import { approval, createAgent, requireApproval, suspend, tool } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { inProcessSessions } from 'millrace/sessions';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import {
  AbstractChat,
  type ChatState,
  type ChatStatus,
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type ToolUIPart,
  type UIMessage,
} from 'ai';
import { filter, firstValueFrom, Subject, take } from 'rxjs';
import { agUi } from '../ag-ui/index.js';
import { queueOf } from '../approvals/asking.test-support.js';
import { answerAmong, answerIn, isValidMessage, watched } from '../read-as-client.test-support.js';
import { chatServer, type ChatServer, type ChatServerOptions } from './index.js';

const servers: ChatServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close({ timeoutMs: 0 }))));

const input = jsonSchema({ type: 'object', properties: { amount: { type: 'number' } } });

const payingServer = (answers: readonly ScriptedAnswer[], options: ChatServerOptions = {}) => {
  const approvals = queueOf();
  const paid: unknown[] = [];
  const run = (amount: unknown) => {
    paid.push(amount);
    return 'Paid.';
  };
  const released$ = new Subject<string>();
  const model = scriptedModel(...answers);
  const tools = [
    requireApproval(tool({ name: 'pay', description: 'Pays.', input, run }), approvals.approve),
    tool({ name: 'slow', description: 'Waits.', run: () => released$.pipe(take(1)) }),
    tool({ name: 'where', description: 'Asks the client.', run: () => suspend() }),
    requireApproval(
      requireApproval(
        tool({ name: 'raised', description: 'Pays.', input, run }),
        approvals.approve,
      ),
      () => ({ approved: true, input: { amount: 50 } }),
    ),
    requireApproval(
      requireApproval(tool({ name: 'twice', description: 'Pays.', run }), approvals.approve),
      approvals.approve,
    ),
  ];
  const agent = createAgent({ name: 'payer', model, tools });
  const server = chatServer(agent, { approvals, protocols: [agUi()], ...options });
  servers.push(server);
  return { server, approvals, paid, model, released$, agent };
};

const fetchOf =
  ({ respond }: ChatServer) =>
  (url: string | URL | Request, init?: RequestInit) =>
    respond(new Request(String(url), init));

/** Sends messages of a conversation, as a client does. */
const posted = ({ respond }: ChatServer, messages: unknown, user?: string, id = 'a') =>
  respond(
    new Request('http://localhost/api/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(user && { authorization: user }) },
      body: JSON.stringify({ id, messages }),
    }),
  );

class State implements ChatState<UIMessage> {
  status: ChatStatus = 'ready';
  error: Error | undefined;
  messages: UIMessage[] = [];
  pushMessage = (message: UIMessage): void => void this.messages.push(message);
  popMessage = (): void => void this.messages.pop();
  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages[index] = structuredClone(message);
  };
  snapshot = <T>(value: T): T => structuredClone(value);
}

/** What `useChat` is made of. */
class Client extends AbstractChat<UIMessage> {
  readonly asked$ = new Subject<void>();
  constructor(server: ChatServer, sendsAlone = true) {
    super({
      id: 'a',
      state: new State(),
      transport: new DefaultChatTransport({
        api: 'http://localhost/api/chat',
        fetch: fetchOf(server),
      }),
      ...(sendsAlone && {
        sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
      }),
      onFinish: () => {
        this.asked$.next();
      },
    });
  }

  /** Until the next stream has ended. */
  readonly ended = async (): Promise<void> => {
    await firstValueFrom(this.asked$);
    await new Promise(setImmediate);
  };

  get tools(): ToolUIPart[] {
    return (this.lastMessage?.parts ?? []).filter(isToolUIPart) as ToolUIPart[];
  }

  readonly states = (): readonly string[] => this.tools.map(({ state }) => state);
}

const answerOf = ({ lastMessage }: Client): string =>
  lastMessage === undefined ? '' : answerIn(lastMessage);

const pays = [toolCall('pay', { amount: 5 }, 'p'), finish()];

describe('the approval buttons of the AI SDK', () => {
  it('let a tool run: the same message continues', async () => {
    const { server, paid } = payingServer([pays, [text('It is paid.')]]);
    const client = new Client(server);
    await client.sendMessage({ text: 'Pay 5.' });
    expect([client.status, client.states(), paid]).toEqual(['ready', ['approval-requested'], []]);
    const [id] = client.tools.map(({ approval }) => approval?.id ?? '');
    const over = client.ended();
    await client.addToolApprovalResponse({ id: id ?? '', approved: true });
    await over;
    expect([client.error, client.states(), paid]).toEqual([
      undefined,
      ['output-available'],
      [{ amount: 5 }],
    ]);
    expect([client.messages.length, answerOf(client)]).toEqual([2, 'It is paid.']);
    expect(await isValidMessage(client.messages[1] as UIMessage)).toBe(true);
    // The message is that of the history.
    const history = await fetchOf(server)('http://localhost/api/chat/a');
    const { messages } = (await history.json()) as { messages: UIMessage[] };
    expect(messages.map((message) => [message.id, answerIn(message)])[1]).toEqual([
      client.messages[1]?.id,
      'It is paid.',
    ]);
  });

  it('deny a tool with a reason, which the model reads', async () => {
    const { server, paid, model } = payingServer([pays, [text('Then not.')]]);
    const client = new Client(server);
    await client.sendMessage({ text: 'Pay 5.' });
    const over = client.ended();
    const id = client.tools[0]?.approval?.id ?? '';
    await client.addToolApprovalResponse({ id, approved: false, reason: 'Too much.' });
    await over;
    expect([client.states(), paid, answerOf(client)]).toEqual([['output-denied'], [], 'Then not.']);
    expect(JSON.stringify(model.requests[1])).toContain('Too much.');
    expect(await isValidMessage(client.messages[1] as UIMessage)).toBe(true);
  });

  it.each<[string, boolean, ChatServerOptions, readonly string[]]>([
    ['of a user', false, {}, ['Too much.']],
    ['of a program, which is for the model', true, {}, []],
    [
      'of a program, if the operator shows it',
      true,
      { onDenial: ({ reason, by = 'program' }) => `${by}: ${reason}` },
      ['program: Score 0.9.'],
    ],
  ])('show the reason of a denial: %s', async (_, approved, options, shown) => {
    const { agent, approvals, model } = payingServer([pays, [text('Then not.')]]);
    const guarded = agent.with(approval(() => ({ approved: false, reason: 'Score 0.9.' })));
    const server = chatServer(approved ? guarded : agent, { approvals, ...options });
    servers.push(server);
    const client = new Client(server);
    await client.sendMessage({ text: 'Pay 5.' });
    const over = client.ended();
    const id = client.tools[0]?.approval?.id ?? '';
    await client.addToolApprovalResponse({
      id,
      approved,
      ...(!approved && { reason: 'Too much.' }),
    });
    await over;
    expect(client.states()).toEqual(['output-denied']);
    const reasons = client.messages
      .flatMap(({ parts }) => parts)
      .flatMap((part) => (part.type === 'data-approval' ? [part.data] : []))
      .map((data) => (data as { reason?: string }).reason)
      .filter((reason) => reason !== undefined);
    expect(reasons).toEqual(shown);
    expect(JSON.stringify(model.requests[1])).toContain(approved ? 'Score 0.9.' : 'Too much.');
  });

  it('decide on several tools, while others have run to their end', async () => {
    const calls = [
      ...pays.slice(0, 1),
      toolCall('slow', {}, 's'),
      toolCall('pay', { amount: 7 }, 'q'),
    ];
    const { server, approvals, paid, released$ } = payingServer([
      [...calls, finish()],
      [text('Done.')],
    ]);
    const client = new Client(server);
    const sent = client.sendMessage({ text: 'Pay twice.' });
    await firstValueFrom(approvals.requests$.pipe(filter(({ length }) => length === 2)));
    expect(client.status).toBe('streaming');
    released$.next('Slow, but here.');
    await sent;
    expect(client.states()).toEqual([
      'approval-requested',
      'output-available',
      'approval-requested',
    ]);
    const over = client.ended();
    await client.addToolApprovalResponse({
      id: client.tools[0]?.approval?.id ?? '',
      approved: false,
    });
    expect(client.states()[0]).toBe('approval-responded');
    await client.addToolApprovalResponse({
      id: client.tools[2]?.approval?.id ?? '',
      approved: true,
    });
    await over;
    expect(client.states()).toEqual(['output-denied', 'output-available', 'output-available']);
    expect([paid, answerOf(client)]).toEqual([[{ amount: 7 }], 'Done.']);
  });

  it('ask again in a later turn of the same call', async () => {
    const { server, paid } = payingServer([
      pays,
      [toolCall('pay', { amount: 6 }, 'p'), finish()],
      [text('Twice.')],
    ]);
    const client = new Client(server);
    await client.sendMessage({ text: 'Pay 5, then 6.' });
    for (const amount of [5, 6]) {
      const open = client.tools.find(({ state }) => state === 'approval-requested');
      expect(open?.input).toEqual({ amount });
      const over = client.ended();
      await client.addToolApprovalResponse({ id: open?.approval?.id ?? '', approved: true });
      await over;
    }
    expect([client.error, paid.length, answerOf(client)]).toEqual([undefined, 2, 'Twice.']);
    expect(client.messages).toHaveLength(2);
  });

  it('work if the client loses the response to its verdict and sends it again', async () => {
    const { server, paid } = payingServer([pays, [text('It is paid.')]]);
    const client = new Client(server, false);
    await client.sendMessage({ text: 'Pay 5.' });
    await client.addToolApprovalResponse({
      id: client.tools[0]?.approval?.id ?? '',
      approved: true,
    });
    const post = () => posted(server, client.messages);
    const [first, second] = [await post(), await post()].map((response) => response.text());
    expect((await first)?.match(/"delta":"It is paid."/gu)).toHaveLength(1);
    expect((await second)?.match(/"delta":"It is paid."/gu)).toHaveLength(1);
    expect(await first).not.toContain('"type":"tool-input-start"');
    expect(paid).toHaveLength(1);
  });

  it('are shown again after a reload', async () => {
    const { server } = payingServer([pays, [text('It is paid.')]]);
    await new Client(server).sendMessage({ text: 'Pay 5.' });
    const client = new Client(server);
    await client.resumeStream();
    expect(client.states()).toEqual(['approval-requested']);
    const over = client.ended();
    await client.addToolApprovalResponse({
      id: client.tools[0]?.approval?.id ?? '',
      approved: true,
    });
    await over;
    expect([client.error, answerOf(client)]).toEqual([undefined, 'It is paid.']);
  });

  it('are all shown again after a reload, and after a lost connection', async () => {
    const calls = ['p', 'q', 'r'].map((id) => toolCall('pay', { amount: 1 }, id));
    const { server } = payingServer([[...calls, finish()], [text('Done.')]]);
    const question = { id: 'q', role: 'user', parts: [{ type: 'text', text: 'Pay.' }] };
    const asked = await posted(server, [question]);
    const requests = (stream: string) => stream.match(/"tool-approval-request"/gu)?.length;
    const whole = await asked.text();
    expect(requests(whole)).toBe(3);
    const ids = [undefined, ...Array.from(whole.matchAll(/^id: (.+)$/gmu), ([, id]) => id)];
    for (const id of ids) {
      const headers: Record<string, string> = id === undefined ? {} : { 'last-event-id': id };
      const rest = await fetchOf(server)('http://localhost/api/chat/a/stream', { headers });
      const events = await rest.text();
      expect([id, requests(events)]).toEqual([id, 3]);
      expect(events).toContain('"type":"finish"');
    }
  });

  it('keep a call that another client leaves meanwhile', async () => {
    const { server, paid } = payingServer([pays, [text('It is paid.')]], { onDisconnect: 'abort' });
    const client = new Client(server);
    await client.sendMessage({ text: 'Pay 5.' });
    const other = await fetchOf(server)('http://localhost/api/chat/a/stream?approvals=token');
    await other.body?.cancel();
    const over = client.ended();
    await client.addToolApprovalResponse({
      id: client.tools[0]?.approval?.id ?? '',
      approved: true,
    });
    await over;
    expect([paid.length, answerOf(client)]).toEqual([1, 'It is paid.']);
  });

  it('decide on a call that the next server has resumed', async () => {
    const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
    const first = payingServer([pays], { store });
    const client = new Client(first.server, false);
    await client.sendMessage({ text: 'Pay 5.' });
    await first.server.close({ timeoutMs: 0 });
    await client.addToolApprovalResponse({
      id: client.tools[0]?.approval?.id ?? '',
      approved: true,
    });
    const second = payingServer([[text('It is paid.')]], { store });
    const answer = await posted(second.server, client.messages);
    const events = await answer.text();
    expect(events).toContain('It is paid.');
    expect(events).not.toContain('tool-approval-request');
    expect([first.paid, second.paid]).toEqual([[], [{ amount: 5 }]]);
  });

  it('do not abort a call whose client was asked for approval', async () => {
    const { server, paid } = payingServer([pays, [text('It is paid.')]], { onDisconnect: 'abort' });
    const client = new Client(server);
    await client.sendMessage({ text: 'Pay 5.' });
    const over = client.ended();
    await client.addToolApprovalResponse({
      id: client.tools[0]?.approval?.id ?? '',
      approved: true,
    });
    await over;
    expect([paid.length, answerOf(client)]).toEqual([1, 'It is paid.']);
  });

  it('are of no use to others, nor for unknown or ended calls', async () => {
    const { server, approvals, paid } = payingServer([pays, [text('It is paid.')]], {
      user: ({ headers }) => headers.get('authorization') ?? undefined,
    });
    const post = (user: string, chatId: string, id: string, verdict: object) =>
      server.respond(
        new Request('http://localhost/api/chat', {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: user },
          body: JSON.stringify({
            id: chatId,
            messages: [
              {
                id: 'm',
                role: 'assistant',
                parts: [{ state: 'approval-responded', approval: { ...verdict, id } }],
              },
            ],
          }),
        }),
      );
    const question = { id: 'q', role: 'user', parts: [{ type: 'text', text: 'Pay 5.' }] };
    const asked = await posted(server, [question], 'ann');
    const id = /"approvalId":"([^"]+)"/u.exec(await asked.text())?.[1] ?? '';
    const yes = { approved: true };
    expect((await post('bob', 'a', id, yes)).status).toBe(404);
    expect((await post('ann', 'b', id, yes)).status).toBe(404);
    expect((await post('ann', 'a', 'other/1/p', yes)).status).toBe(404);
    expect((await post('ann', 'a', 'p', yes)).status).toBe(400);
    expect((await post('ann', 'a', id, { approved: 'yes' })).status).toBe(400);
    expect((await post('ann', 'a', id, { ...yes, reason: 1 })).status).toBe(400);
    expect(paid).toEqual([]);
    expect(await firstValueFrom(approvals.requests$)).toHaveLength(1);
    await server.respond(
      new Request('http://localhost/api/chat/a/stop', {
        method: 'POST',
        headers: { authorization: 'ann' },
      }),
    );
    const late = await post('ann', 'a', id, yes);
    expect([late.status, paid]).toEqual([410, []]);
  });

  it('answer each question on a tool call once', async () => {
    const { server, paid } = payingServer([
      [toolCall('twice', {}, 't'), finish()],
      [text('Done.')],
    ]);
    const client = new Client(server, false);
    await client.sendMessage({ text: 'Pay.' });
    const id = client.tools[0]?.approval?.id ?? '';
    await client.addToolApprovalResponse({ id, approved: true });
    const post = async (messages: readonly UIMessage[]) => {
      const answer = await posted(server, messages);
      return answer.text();
    };
    const second = await post(client.messages);
    expect(second).toContain(`"approvalId":"${id}?2"`);
    // The answer was lost: the same verdict comes again.
    expect(await post(client.messages)).toContain(`"approvalId":"${id}?2"`);
    expect(paid).toEqual([]);
    const answered = JSON.stringify(client.messages).replaceAll(`"id":"${id}"`, `"id":"${id}?2"`);
    expect(await post(JSON.parse(answered) as UIMessage[])).toContain('Done.');
    expect(paid).toHaveLength(1);
  });

  it('I20: decide on the shown input, not on one that another approver edited', async () => {
    const { server, paid } = payingServer([
      [toolCall('raised', { amount: 5 }, 't'), finish()],
      [text('Done.')],
    ]);
    const client = new Client(server, false);
    await client.sendMessage({ text: 'Pay.' });
    const id = client.tools[0]?.approval?.id ?? '';
    await client.addToolApprovalResponse({ id, approved: true });
    const post = async (messages: unknown) => {
      const answer = await posted(server, messages);
      return answer.text();
    };
    const asked = await Promise.all([post(client.messages), post(client.messages)]);
    expect(asked.map((it) => it.includes(`"approvalId":"${id}?3"`))).toEqual([true, true]);
    // Nobody has seen the raised amount yet.
    expect(paid).toEqual([]);
    const answered = JSON.stringify(client.messages).replaceAll(`"id":"${id}"`, `"id":"${id}?3"`);
    expect(await post(JSON.parse(answered))).toContain('Done.');
    expect(paid).toEqual([{ amount: 50 }]);
  });

  it('let two clients decide at the same time: the same verdict counts once', async () => {
    const { server, paid } = payingServer([pays, [text('It is paid.')]]);
    const client = new Client(server, false);
    await client.sendMessage({ text: 'Pay 5.' });
    const id = client.tools[0]?.approval?.id ?? '';
    // The same verdict: which of them comes first is open.
    const bodies = [true, true].map((approved) =>
      JSON.stringify({
        id: 'a',
        messages: [
          {
            id: 'm',
            role: 'assistant',
            parts: [{ state: 'approval-responded', approval: { id, approved } }],
          },
        ],
      }),
    );
    const headers = { 'content-type': 'application/json' };
    const answers = await Promise.all(
      bodies.map((body) =>
        fetchOf(server)('http://localhost/api/chat', { method: 'POST', headers, body }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const texts = await Promise.all(answers.map((answer) => answer.text()));
    expect(texts.every((it) => it.includes('It is paid.'))).toBe(true);
    expect(paid).toHaveLength(1);
  });

  /** Each verdict, then another one: the later answer, by what has become of the tool call. */
  it.each<[unknown, unknown, string | undefined]>([
    [{ approved: true }, { approved: true }, undefined],
    [{ approved: true }, { approved: true, reason: 'Other.' }, undefined],
    [{ approved: true }, { approved: true, input: { amount: 5 } }, undefined],
    [{ approved: true }, { approved: true, input: { amount: 6 } }, 'approved'],
    [{ approved: true }, { approved: false }, 'approved'],
    [{ approved: false }, { approved: false, reason: 'No.' }, undefined],
    [{ approved: false }, { approved: true }, 'refused'],
    [{ approved: true, input: { amount: 2 } }, { approved: true, input: { amount: 2 } }, undefined],
    [
      { approved: true, input: { amount: 2 } },
      { approved: true, input: { amount: 3 } },
      'approved with another input',
    ],
    [{ approved: true, input: { amount: 2 } }, { approved: true }, 'approved with another input'],
    [{ approved: true, input: { amount: 2 } }, { approved: false }, 'approved with another input'],
  ])('T12: after %j, refuse %j and name the one that counts: %s', async (first, second, counts) => {
    const { server, paid } = payingServer([pays, [text('Done.')], [text('Hello.')]]);
    const client = new Client(server, false);
    await client.sendMessage({ text: 'Pay 5.' });
    const id = client.tools[0]?.approval?.id ?? '';
    const asAiSdk = (verdict: unknown) => [
      'chat',
      {
        id: 'a',
        messages: [
          {
            id: 'm',
            role: 'assistant',
            parts: [{ state: 'approval-responded', approval: { ...Object(verdict), id } }],
          },
        ],
      },
    ];
    const asAgUi = (payload: unknown) => [
      'ag-ui',
      {
        ...{ threadId: 'a', runId: 'r', messages: [] },
        resume: [{ interruptId: id, status: 'resolved', payload }],
      },
    ];
    const post = async ([path, body]: readonly unknown[]) => {
      const answer = await fetchOf(server)(`http://localhost/api/${String(path)}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return { status: answer.status, text: await answer.text() };
    };
    expect((await post(asAiSdk(first))).text).toContain('Done.');
    const times = paid.length;
    for (const as of [asAiSdk, asAgUi]) {
      const later = await post(as(second));
      expect(later.status).toBe(counts === undefined ? 200 : 409);
      if (counts === undefined) expect(later.text).toContain('Done.');
      else {
        expect(JSON.parse(later.text)).toEqual({
          code: 'invalidResume',
          error: `This request has already been decided: it was ${counts}.`,
        });
      }
    }
    expect(paid).toHaveLength(times);
    // What the client has of the past does not stop its next message, whatever it says.
    const stale = { state: 'approval-responded', approval: { ...Object(second), id } };
    const history = await fetchOf(server)('http://localhost/api/chat/a');
    const { messages } = (await history.json()) as { messages: UIMessage[] };
    const known = messages.map((it) =>
      it.role === 'assistant' ? { ...it, parts: [...it.parts, stale] } : it,
    );
    const question = { id: 'n', role: 'user', parts: [{ type: 'text', text: 'Hello?' }] };
    const next = await post(['chat', { id: 'a', messages: [...known, question] }]);
    expect(next).toMatchObject({ status: 200, text: expect.stringContaining('Hello.') });
  });

  it('T12: that contradict each other concurrently: the later one gets an error', async () => {
    const { server, paid } = payingServer([pays, [text('Done.')]]);
    const client = new Client(server, false);
    await client.sendMessage({ text: 'Pay 5.' });
    const id = client.tools[0]?.approval?.id ?? '';
    const answers = await Promise.all(
      [true, false].map((approved) =>
        fetchOf(server)('http://localhost/api/chat', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            id: 'a',
            messages: [
              {
                id: 'm',
                role: 'assistant',
                parts: [{ state: 'approval-responded', approval: { id, approved } }],
              },
            ],
          }),
        }),
      ),
    );
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 409]);
    await Promise.all(answers.map((answer) => answer.text()));
    expect(paid).toHaveLength(answers[0]?.status === 200 ? 1 : 0);
  });

  it('T12: decide on nothing if one of several contradicts a final decision', async () => {
    const both = ['p', 'q'].map((use) => toolCall('pay', { amount: 5 }, use));
    const { server, approvals, paid } = payingServer([[...both, finish()], [text('Done.')]]);
    const client = new Client(server, false);
    await client.sendMessage({ text: 'Pay twice.' });
    const ids = client.tools.map(({ approval }) => approval?.id ?? '');
    const [waiting] = await firstValueFrom(approvals.requests$);
    await approvals.decide(waiting?.token ?? '', false);
    const post = (verdicts: readonly boolean[]) =>
      fetchOf(server)('http://localhost/api/chat', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          id: 'a',
          messages: [
            {
              id: 'm',
              role: 'assistant',
              parts: verdicts.map((approved, at) => ({
                state: 'approval-responded',
                approval: { id: ids[at], approved },
              })),
            },
          ],
        }),
      });
    expect((await post([true, true])).status).toBe(409);
    expect(await firstValueFrom(approvals.requests$)).toHaveLength(1);
    expect(await (await post([false, true])).text()).toContain('Done.');
    expect(paid).toHaveLength(1);
  });

  it('are omitted for a client that wants tokens', async () => {
    const { server, paid } = payingServer([pays, [text('It is paid.')]]);
    const headers = { 'content-type': 'application/json' };
    const question = { id: 'q', role: 'user', parts: [{ type: 'text', text: 'Pay 5.' }] };
    const asked = await fetchOf(server)('http://localhost/api/chat?approvals=token', {
      method: 'POST',
      headers,
      body: JSON.stringify({ id: 'a', messages: [question] }),
    });
    const reader = asked.body?.pipeThrough(new TextDecoderStream()).getReader();
    let seen = '';
    let token: string | undefined;
    while (token === undefined) {
      seen += (await reader?.read())?.value ?? '';
      token = /"token":"([^"]+)"/u.exec(seen)?.[1];
    }
    const body = JSON.stringify({ token, approved: true });
    const decided = await fetchOf(server)('http://localhost/api/approvals', {
      method: 'POST',
      headers,
      body,
    });
    expect(decided.status).toBe(204);
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
      seen += next.value;
    }
    expect([paid.length, seen.includes('It is paid.'), seen.includes('approvalId')]).toEqual([
      1,
      true,
      false,
    ]);
  });
});

describe('the interrupts of AG-UI', () => {
  const asking = (server: ChatServer) =>
    new HttpAgent({
      url: 'http://localhost/api/ag-ui',
      threadId: 'a',
      initialMessages: [{ id: 'q', role: 'user', content: 'Pay 5.' }],
      fetch: fetchOf(server),
    });

  it.each([
    ['allow a tool', true, [{ amount: 5 }]],
    ['allow it with other arguments', { approved: true, input: { amount: 1 } }, [{ amount: 1 }]],
    ['deny it', { approved: false, reason: 'No.' }, []],
    ['deny it by leaving', undefined, []],
  ])('%s', async (_, payload, expected) => {
    const { server, paid } = payingServer([pays, [text('Done.')]]);
    const agent = asking(server);
    const first = await watched(agent);
    expect(first.errors).toEqual([]);
    const [interrupt]: readonly Interrupt[] = agent.pendingInterrupts;
    expect(interrupt).toMatchObject({ reason: 'tool_approval', toolCallId: interrupt?.id });
    expect(new Date(interrupt?.expiresAt ?? 0).getTime()).toBeGreaterThan(Date.now());
    const interruptId = interrupt?.id ?? '';
    const answer =
      payload === undefined
        ? { interruptId, status: 'cancelled' as const }
        : { interruptId, status: 'resolved' as const, payload };
    const second = await watched(agent, { resume: [answer] });
    expect([second.errors, agent.pendingInterrupts, paid]).toEqual([[], [], expected]);
    expect(answerAmong(second)).toBe('Done.');
    expect(agent.messages.filter(({ role }) => role === 'user')).toHaveLength(1);
  });

  it.each([
    ['a verdict without a payload', [{ interruptId: 'a/1/p', status: 'resolved' }], 400],
    ['something that is no list', { interruptId: 'a/1/p' }, 400],
    ['an entry without an id', [{ status: 'resolved', payload: true }], 400],
    ['two calls', ['a/1/p', 'b/1/p'].map((id) => ({ interruptId: id, status: 'cancelled' })), 400],
    ['an unknown call', [{ interruptId: 'a/1/p', status: 'cancelled' }], 404],
  ])('are refused: %s', async (_, resume, status) => {
    const { server } = payingServer([]);
    const response = await fetchOf(server)('http://localhost/api/ag-ui', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ threadId: 'a', runId: 'r', messages: [], resume }),
    });
    expect(response.status).toBe(status);
  });
});
