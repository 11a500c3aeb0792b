import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Agent,
  type AgentEvent,
  contextKey,
  createAgent,
  type EventOf,
  isEvent,
  type Model,
  MillraceError,
  requireApproval,
  suspend,
  textOf,
  tool,
  toolResults,
  type Verdict,
} from 'millrace';
import { attach$, type CallStoreDriver, createCallStore } from 'millrace/journal';
import { keepSessions } from 'millrace/sessions';
import { jsonSchema } from 'millrace/schema';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { isRecord } from 'millrace/values';
import { openFiles } from '@millrace/store';
import { createEndpointHandler } from '@restatedev/restate-sdk';
import {
  concat,
  defer,
  filter,
  finalize,
  firstValueFrom,
  ignoreElements,
  map,
  NEVER,
  type Observable,
  of,
  skip,
  Subject,
  take,
  throwError,
} from 'rxjs';
import {
  type AgentStore,
  restateAgents,
  type RestateAgentsOptions,
  awaitDecision,
} from './index.js';
import { type RestateServer, startRestate } from './restate-server.test-support.js';

let server: RestateServer;
let directory: string;
const endpoints: Http2Server[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-restate-'));
  server = await startRestate();
});
afterAll(async () => {
  await server.stop();
  endpoints.forEach((endpoint) => endpoint.close());
  await rm(directory, { recursive: true });
});

const newStore = async () => openFiles(await mkdtemp(join(directory, 'store-')));

/** Serves an agent. Attempts that fail are repeated soon. */
const serve = async (
  agent: Agent,
  store: AgentStore,
  { objectOptions, ...options }: Partial<RestateAgentsOptions> = {},
) => {
  const retryPolicy = { initialInterval: 20, maxInterval: 20 };
  const { services } = restateAgents([agent], {
    store,
    objectOptions: { retryPolicy, ...objectOptions },
    ...options,
  });
  const endpoint = createServer(createEndpointHandler({ services, logger: () => undefined }));
  endpoints.push(endpoint);
  const connections = new Set<ServerHttp2Session>();
  endpoint.on('session', (connection) => connections.add(connection));
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  const address = endpoint.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await server.register(`http://127.0.0.1:${port}`);
  const disconnect = (): void => connections.forEach((connection) => connection.destroy());
  return { disconnect };
};

type Served = Awaited<ReturnType<typeof serve>>;

const textOfReply = ({ body }: { readonly body: unknown }): unknown => {
  const reply = isRecord(body) ? body['reply'] : undefined;
  return isRecord(reply) ? reply['text'] : body;
};

/** Resolves to an event of a call once it is recorded, however late the call starts. */
const seen = <Type extends AgentEvent['type']>(
  store: AgentStore,
  callId: string,
  type: Type,
  isWanted: (event: AgentEvent) => boolean = () => true,
): Promise<EventOf<Type>> =>
  firstValueFrom(
    attach$(store.calls, callId, { waitMs: 30_000 }).pipe(
      filter(isWanted),
      filter((event) => isEvent(event, type)),
    ),
  );

describe('a call', () => {
  it('remembers the calls of its session before it', async () => {
    const count: ScriptedAnswer = ({ messages }) => [text(`${messages.length} messages.`)];
    const store = await newStore();
    await serve(
      createAgent({ name: 'remembers', model: scriptedModel(count, count, count) }),
      store,
    );
    const first = await server.call('/remembers/a%2F1/call', { input: 'Hello.', callId: 'first' });
    expect(first).toMatchObject({
      status: 200,
      body: {
        callId: 'first',
        reason: 'answer',
        reply: { text: '1 messages.', role: 'assistant' },
      },
    });
    expect(textOfReply(await server.call('/remembers/a%2F1/call', { input: 'And?' }))).toBe(
      '3 messages.',
    );
    expect(textOfReply(await server.call('/remembers/b/call', { input: 'And?' }))).toBe(
      '1 messages.',
    );
  });
});

/** Answers after `open$` has emitted, and notes when. */
const gated = (log: string[]) => {
  const open$ = new Subject<unknown>();
  const changed$ = new Subject<unknown>();
  const note = (entry: string): void => {
    log.push(entry);
    changed$.next(entry);
  };
  const answer: ScriptedAnswer = ({ messages }) => {
    const [asked] = messages.at(-1)?.content ?? [];
    const name = asked?.type === 'text' ? asked.text : '';
    return defer(() => {
      note(`${name} starts`);
      const waits$ = open$.pipe(take(1), ignoreElements());
      return concat(waits$, of(text(name), finish())).pipe(finalize(() => note(`${name} ends`)));
    });
  };
  const until = (entries: number): Promise<unknown> =>
    log.length >= entries
      ? Promise.resolve()
      : firstValueFrom(changed$.pipe(filter(() => log.length >= entries)));
  return { answer, open$, until };
};

describe('a session', () => {
  it('has what another process has added to it', async () => {
    const count: ScriptedAnswer = ({ messages }) => [text(`${messages.length} messages.`)];
    const store = await newStore();
    const options = { name: 'shared', model: scriptedModel(count, count, count) };
    const agent = createAgent(options);
    await serve(agent, store);
    await server.call('/shared/s/call', { input: 'Hello.' });
    const other = await keepSessions(createAgent(options), store.sessions).open('s');
    await other.call('And?');
    expect(textOfReply(await server.call('/shared/s/call', { input: 'Well?' }))).toBe(
      '5 messages.',
    );
  });

  it('runs its calls one by one, while those of others run', async () => {
    const log: string[] = [];
    const { answer, open$, until } = gated(log);
    const model = scriptedModel(answer, answer, answer);
    await serve(createAgent({ name: 'queues', model }), await newStore());
    const first = await server.send('/queues/a/call', { input: 'a1' });
    await until(1);
    const second = await server.send('/queues/a/call', { input: 'a2' });
    const other = await server.send('/queues/b/call', { input: 'b1' });
    await until(2);
    expect(log).toEqual(['a1 starts', 'b1 starts']);
    open$.next(0);
    await until(5);
    expect(log.slice(2, 4).sort()).toEqual(['a1 ends', 'b1 ends']);
    expect(log[4]).toBe('a2 starts');
    open$.next(0);
    const answers = await Promise.all([first, second, other].map(server.attach));
    expect(answers.map(textOfReply)).toEqual(['a1', 'a2', 'b1']);
  });

  it('is continued with the results that it waits for', async () => {
    const ask = tool({ name: 'ask', description: 'Asks.', run: () => suspend('Which city?') });
    const model = scriptedModel(
      [toolCall('ask')],
      [text('Oslo it is.')],
      [toolCall('ask')],
      [text('Fine.')],
    );
    await serve(createAgent({ name: 'suspends', model, tools: [ask] }), await newStore());
    const { body } = await server.call('/suspends/s/call', { input: 'Book a table.' });
    expect(body).toMatchObject({ reason: 'suspended' });
    const input = toolResults({ call_1_0: 'Oslo.' });
    expect(textOfReply(await server.call('/suspends/s/call', { input }))).toBe('Oslo it is.');
    // Such as results that were sent with a delay, as a deadline.
    const late = await server.call('/suspends/s/call', { input });
    expect(late).toMatchObject({ body: { message: expect.stringMatching(/^invalidResume: /) } });
    // A message instead of the results cancels what waits.
    await server.call('/suspends/t/call', { input: 'Book a table.' });
    expect(textOfReply(await server.call('/suspends/t/call', { input: 'No.' }))).toBe('Fine.');
    expect(await server.call('/suspends/t/call', { input })).toMatchObject({
      status: 409,
      body: { message: expect.stringContaining('was cancelled') },
    });
  });

  it('continues after a call that was cancelled', async () => {
    const log: string[] = [];
    const { answer, open$, until } = gated(log);
    const store = await newStore();
    await serve(createAgent({ name: 'cancels', model: scriptedModel(answer, answer) }), store);
    const cancelled = await server.send('/cancels/s/call', { input: 'a' });
    const next = await server.send('/cancels/s/call', { input: 'b' });
    await until(1);
    await server.cancel(cancelled);
    await until(3);
    expect(log).toEqual(['a starts', 'a ends', 'b starts']);
    open$.next(0);
    expect(await server.attach(cancelled)).toMatchObject({
      status: 409,
      body: { message: 'Cancelled' },
    });
    expect(textOfReply(await server.attach(next))).toBe('b');
    const error = await seen(store, cancelled, 'error');
    expect(error).toMatchObject({ error: { code: 'aborted' } });
  });
});

describe('a call without a session', () => {
  it('has the key of its object as its id, and is repeated from the store', async () => {
    const { calls } = await newStore();
    const model = scriptedModel([text('Once.')]);
    await serve(createAgent({ name: 'keyed', model }), { calls });
    for (const attempt of [1, 2]) {
      const { body } = await server.call('/keyed/order-1/call', { input: `Try ${attempt}.` });
      expect(body).toMatchObject({ callId: 'order-1', reply: { text: 'Once.' } });
    }
    const other = await server.call('/keyed/order-1/call', { input: 'Hi.', callId: 'order-2' });
    expect(other).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('config: Without sessions') },
    });
    const steered = await server.call('/keyed/order-1/steer', { callId: 'order-1', input: 'Hi.' });
    expect(steered).toMatchObject({ status: 400 });
  });
});

/** Calls a tool until a user writes something else. */
const untilSteered: ScriptedAnswer = ({ messages }) => {
  const texts = messages.flatMap(({ role, content }) =>
    role === 'user' ? content.flatMap((block) => (block.type === 'text' ? [block.text] : [])) : [],
  );
  return texts.length > 1 ? [text(texts.join(' '))] : [toolCall('tick')];
};
const tick = tool({ name: 'tick', description: 'Ticks.', run: () => 'Tick.' });

describe('a running call', () => {
  it('takes messages from outside', async () => {
    const store = await newStore();
    const model: Model = {
      name: 'loops',
      stream$: (request, context) => scriptedModel(untilSteered).stream$(request, context),
    };
    const limits = { maxIterations: 10_000 };
    await serve(createAgent({ name: 'steered', model, tools: [tick], limits }), store);
    const call = await server.send('/steered/s/call', { input: 'Go.', callId: 'c' });
    await seen(store, 'c', 'preActing');
    const steer = (callId: string) => server.call('/steered/s/steer', { callId, input: 'Faster.' });
    expect(await steer('other')).toEqual({ status: 200, body: { status: 'notRunning' } });
    expect(await steer('c')).toEqual({ status: 200, body: { status: 'sent' } });
    expect(textOfReply(await server.attach(call))).toBe('Go. Faster.');
    expect(await steer('c')).toEqual({ status: 200, body: { status: 'notRunning' } });
  });

  it('is interrupted from outside', async () => {
    const store = await newStore();
    const wait = tool({ name: 'wait', description: 'Waits.', run: () => NEVER });
    const model = scriptedModel([toolCall('wait')]);
    await serve(createAgent({ name: 'interrupted', model, tools: [wait] }), store);
    const call = await server.send('/interrupted/s/call', { input: 'Go.', callId: 'c' });
    await seen(store, 'c', 'preActing');
    await server.call('/interrupted/s/interrupt', { callId: 'c', message: 'Enough.' });
    expect(await server.attach(call)).toMatchObject({
      body: { reason: 'interrupted', reply: { text: 'Enough.' } },
    });
  });

  it('waits for decisions on its tool calls and those of its sub-agents', async () => {
    const store = await newStore();
    const input = jsonSchema({ type: 'object', properties: { to: { type: 'string' } } });
    const send = requireApproval(
      tool({ name: 'send', description: 'Sends.', input, run: ({ to = '' }) => `Sent to ${to}.` }),
      awaitDecision,
    );
    const outcome: ScriptedAnswer = ({ messages }) => {
      const [result] = messages.at(-1)?.content ?? [];
      return [text(result?.type === 'tool_result' ? textOf(result) : '')];
    };
    const model = scriptedModel([toolCall('send', { to: 'Ann' })], outcome);
    const clerk = createAgent({ name: 'clerk', model, tools: [send] });
    const ask = tool({
      name: 'ask',
      description: 'Asks the clerk.',
      run: (_, parent) => clerk.call$('Write to Ann.', { parent }).pipe(map(textOf)),
    });
    const chief = createAgent({
      name: 'chief',
      model: scriptedModel([toolCall('send', { to: 'Bob' })], [toolCall('ask')], outcome),
      tools: [send, ask],
    });
    await serve(chief, store);
    const call = await server.send('/chief/s/call', { input: 'Write.', callId: 'c' });
    const decide = async (verdict: Verdict, isNext: (event: AgentEvent) => boolean) => {
      const { callId, toolCall: asked } = await seen(store, 'c', 'approvalRequested', isNext);
      return server.call('/chief/s/decide', { callId, toolCallId: asked.id, verdict });
    };
    await decide({ approved: false, reason: 'Not Bob.' }, ({ callId }) => callId === 'c');
    await decide({ approved: true, input: { to: 'Cid' } }, ({ callId }) => callId !== 'c');
    expect(textOfReply(await server.attach(call))).toBe('Sent to Cid.');
    const denied = await seen(store, 'c', 'approvalDecided');
    expect(denied).toMatchObject({ approved: false, reason: 'Not Bob.' });
  });

  it.each([
    [
      'the connection to Restate is lost',
      ({ disconnect }: Served) => Promise.resolve(disconnect()),
    ],
    ['Restate is killed', () => server.restart()],
  ])('is resumed by another attempt if %s', async (_, disturb) => {
    const store = await newStore();
    const pay = requireApproval(
      tool({ name: 'pay', description: 'Pays.', run: () => 'Paid.' }),
      awaitDecision,
    );
    const agent = createAgent({
      name: 'patient',
      model: scriptedModel([toolCall('pay')], [text('Paid.')]),
      tools: [pay],
    });
    const attempt$ = new Subject<unknown>();
    const served = await serve(agent, store, {
      callOptions: () => {
        attempt$.next(0);
        return {};
      },
    });
    const call = await server.send('/patient/s/call', { input: 'Pay.', callId: 'c' });
    const { toolCall: asked } = await seen(store, 'c', 'approvalRequested');
    const second = firstValueFrom(attempt$);
    await disturb(served);
    await second;
    const decision = { callId: 'c', toolCallId: asked.id, verdict: true };
    await server.call('/patient/s/decide', decision);
    expect(textOfReply(await server.attach(call))).toBe('Paid.');
  });
});

describe('options of a call', () => {
  it('come from the request, and from a function for what JSON cannot express', async () => {
    const user = contextKey<string>('user');
    const who = tool({
      name: 'who',
      description: 'Says who asks.',
      run: (_, context) => `${context.get(user)} of ${context.metadata['tenant'] ?? ''}`,
    });
    const model = scriptedModel([toolCall('who')], ({ messages, maxTokens }) => {
      const [result] = messages.at(-1)?.content ?? [];
      const said = result?.type === 'tool_result' ? textOf(result) : '';
      return [text(`${said}, ${maxTokens}`)];
    });
    await serve(createAgent({ name: 'optional', model, tools: [who] }), await newStore(), {
      callOptions: ({ agent, key, metadata: { tenant = '' }, headers }) => ({
        context: [user.of([agent, key, tenant, headers.get('content-type')].join(' '))],
      }),
    });
    const options = { metadata: { tenant: 'acme' }, request: { maxTokens: 9 } };
    expect(textOfReply(await server.call('/optional/s/call', { input: 'Who?', options }))).toBe(
      'optional s acme application/json of acme, 9',
    );
  });
});

describe('errors', () => {
  it('of a call are terminal, with their code', async () => {
    const model = scriptedModel(
      throwError(() => new MillraceError('auth', 'The key is wrong.')),
      [text('Now.')],
    );
    await serve(createAgent({ name: 'fails', model }), await newStore());
    const answer = await server.call('/fails/s/call', { input: 'Hi.', callId: 'c' });
    expect(answer).toMatchObject({ status: 500, body: { message: 'auth: The key is wrong.' } });
    expect(model.requests.length).toBe(1);
    // The same id resumes it after its last step.
    expect(textOfReply(await server.call('/fails/s/call', { input: 'Hi.', callId: 'c' }))).toBe(
      'Now.',
    );
  });

  it.each([
    ['call', '{"input":', /^Failed to deserialize input/],
    ['call', [], /^config: call\(\) takes an object/],
    ['call', {}, /^config: .*input/],
    ['call', { input: null }, /^config: .*input/],
    ['call', { input: 7 }, /^invalidRequest: The input cannot be read/],
    ['call', { input: 'Hi.', callId: '' }, /^config: .*callId/],
    ['call', { input: 'Hi.', use: [] }, /^config: .*use/],
    ['call', { input: 'Hi.', options: { use: [] } }, /^config: .*use/],
    ['call', { input: 'Hi.', options: { limits: { maxTurns: 1 } } }, /^config: .*maxTurns/],
    ['interrupt', { message: 'Stop.' }, /^config: .*callId/],
    ['steer', { callId: 'c', input: [] }, /^config: .*input/],
    ['decide', { callId: 'c', toolCallId: 't', verdict: 'yes' }, /^config: .*verdict/],
  ])('%s(%j) is refused once and for all', async (handler, body, message) => {
    const answer = await server.call(`/remembers/refused/${handler}`, body);
    expect(answer).toEqual({
      status: 400,
      body: expect.objectContaining({ message: expect.stringMatching(message) }),
    });
  });

  it('of the store are retried', async () => {
    const { calls, sessions } = await newStore();
    const failing = { claims: 2, loads: 2, saves: 1 };
    const failing$ = <T>(part: keyof typeof failing, work$: Observable<T>): Observable<T> =>
      defer(() =>
        failing[part]-- > 0 ? throwError(() => new MillraceError('store', 'It is down.')) : work$,
      );
    const driver: CallStoreDriver = {
      ...calls.driver,
      claim$: (id) => failing$('claims', calls.driver.claim$(id)),
    };
    const store = {
      calls: createCallStore(driver),
      sessions: {
        ...sessions,
        load$: (id: string) => failing$('loads', sessions.load$(id)),
        save$: (...state: Parameters<typeof sessions.save$>) =>
          failing$('saves', sessions.save$(...state)),
      },
    };
    const model = scriptedModel([text('Up.')]);
    await serve(createAgent({ name: 'retries', model }), store);
    expect(textOfReply(await server.call('/retries/s/call', { input: 'Hi.' }))).toBe('Up.');
    expect(Object.values(failing).filter((left) => left >= 0)).toEqual([]);
  });
});

it('a call that another process still has is tried again', async () => {
  const store = await newStore();
  const attempt$ = new Subject<unknown>();
  const model = scriptedModel([text('Free.')]);
  await serve(createAgent({ name: 'claims', model }), store, {
    callOptions: () => {
      attempt$.next(0);
      return {};
    },
  });
  const third = firstValueFrom(attempt$.pipe(skip(2)));
  const held = store.calls.driver.claim$('c').subscribe();
  const call = await server.send('/claims/s/call', { input: 'Hi.', callId: 'c' });
  await third;
  held.unsubscribe();
  expect(textOfReply(await server.attach(call))).toBe('Free.');
});

describe('restateAgents()', () => {
  it.each(['restate', 'openAPI.x', 'two words', 'café', '1st', '_'])(
    'refuses the name %j',
    async (name) => {
      const agent = createAgent({ name, model: scriptedModel() });
      const { calls } = await newStore();
      expect(() => restateAgents([agent], { store: { calls } })).toThrow(
        expect.objectContaining({ code: 'config', message: expect.stringContaining(name) }),
      );
    },
  );

  it('refuses two agents with one name, and a store without calls', async () => {
    const agent = createAgent({ name: 'twin', model: scriptedModel() });
    const store = await newStore();
    expect(() => restateAgents([agent, agent], { store })).toThrow(/Two agents are called 'twin'/);
    // @ts-expect-error It has no calls.
    expect(() => restateAgents([agent], { store: {} })).toThrow(/a store with 'calls'/);
  });
});

it('I23: without Restate, a tool that waits for a decision fails the call, and the error names the fix', async () => {
  const pay = requireApproval(
    tool({ name: 'pay', description: 'Pays.', run: () => 'Paid.' }),
    awaitDecision,
  );
  const model = scriptedModel([toolCall('pay')], [text('Denied.')]);
  await expect(createAgent({ model, tools: [pay] }).call('Pay.')).rejects.toMatchObject({
    code: 'config',
    message: expect.stringContaining('serve the agent with restateAgents()'),
  });
});
