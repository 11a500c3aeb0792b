import { describe, expect, it } from '@jest/globals';
import type { AgentCard, SendMessageConfiguration, Task } from '@a2a-js/sdk';
import { ClientFactory, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import {
  createAgent,
  MillraceError,
  type Model,
  type ModelChunk,
  output,
  requireApproval,
  retry,
  suspend,
  tool,
  toolOutput,
  toolResults,
} from 'millrace';
import { createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { inProcessSessions, keepSessions } from 'millrace/sessions';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import { approvalQueue } from '@millrace/server/approvals';
import { chatServer } from '@millrace/server/chat';
import { concat, from, lastValueFrom, NEVER, of, ReplaySubject, throwError, timer } from 'rxjs';
import { messageOf, textPart } from '../parts.js';
import {
  clientOf,
  readStream,
  saying,
  serving,
  shortOf,
  taskIn,
  textOf,
} from './clients.test-support.js';
import { a2a } from './index.js';

/** A model that answers piece by piece. */
const held = () => {
  const piece$ = new ReplaySubject<ModelChunk>(Infinity);
  return {
    answer: () => piece$,
    say: (delta: string): void => {
      piece$.next({ type: 'text', text: delta });
    },
    end: (): void => {
      piece$.next({ type: 'finish', finish: 'stop' });
      piece$.complete();
    },
  };
};

const ask = tool({
  name: 'ask',
  description: 'Asks the user.',
  input: jsonSchema({ type: 'object', properties: { question: { type: 'string' } } }),
  run: ({ question }) => suspend({ question }),
});

const codeOf = async (failing: Promise<unknown>): Promise<unknown> => {
  try {
    await failing;
  } catch (error) {
    return (error as { envelopeCode?: number }).envelopeCode;
  }
  throw new Error('It did not fail.');
};

/** The id of the tool call that a task asks for. */
const waitingIn = (task: Task): string | undefined =>
  /"toolCallId":"([^"]+)"/u.exec(JSON.stringify(task))?.[1];

const atOnce: SendMessageConfiguration = {
  acceptedOutputModes: [],
  taskPushNotificationConfig: undefined,
  returnImmediately: true,
};

const notFound = -32001;
const notCancelable = -32002;
const noPush = -32003;
const unsupported = -32004;
const noSuchType = -32005;
const malformed = -32602;

describe('an agent over A2A', () => {
  it('answers as a stream and as a whole, in one conversation, and finds its tasks', () => {
    const model = scriptedModel([text('Hello'), text(' Ann.')], [text('You are Ann.')]);
    return serving(createAgent({ name: 'helper', model }), async (served) => {
      const client = await clientOf(served);
      const streamed = await readStream(client.sendMessageStream(saying('I am Ann.')));
      expect(streamed.lines).toEqual([
        'task submitted',
        'working',
        '= Hello',
        '+  Ann.',
        'completed',
      ]);
      const { contextId, id } = streamed.task;
      const next = taskIn(await client.sendMessage(saying('Who am I?', { contextId })));
      expect(shortOf(next)).toEqual({ state: 'completed', answer: 'You are Ann.', says: '' });
      expect(next.contextId).toBe(contextId);
      expect(next.history.map(({ parts }) => textOf(parts))).toEqual(['Who am I?']);
      expect(model.requests[1]?.messages).toHaveLength(3);
      const found = await client.getTask({ tenant: '', id });
      expect(shortOf(found)).toEqual({ state: 'completed', answer: 'Hello Ann.', says: '' });
      expect(found.metadata).toEqual({ millrace: { reason: 'answer', iterations: 1 } });
      const without = await client.getTask({ tenant: '', id, historyLength: 0 });
      expect(without.history).toEqual([]);
    });
  });

  it.each([
    // As Next.js has it: with a name of its own in the URL.
    [{ host: 'a.example' }, 'http://a.example/api/a2a'],
    [{ host: 'a.example:8080' }, 'http://a.example:8080/api/a2a'],
    [
      { 'x-forwarded-host': 'b.example', 'x-forwarded-proto': 'https' },
      'https://b.example/api/a2a',
    ],
    [
      { 'x-forwarded-host': 'b.example, inner', 'x-forwarded-prefix': '/ai' },
      'http://b.example/ai/api/a2a',
    ],
    [{ 'x-forwarded-proto': 'https,http' }, 'https://localhost:3000/api/a2a'],
    [{ 'x-forwarded-host': '[::1]:80' }, 'http://[::1]/api/a2a'],
    [{ 'x-forwarded-proto': 'javascript' }, 'http://localhost:3000/api/a2a'],
    [{ 'x-forwarded-host': 'b.example/evil?' }, 'http://localhost:3000/api/a2a'],
    [{ 'x-forwarded-host': '' }, 'http://localhost:3000/api/a2a'],
  ])('X43: has the address that its client has asked in its card: %j', async (headers, url) => {
    const agent = createAgent({ name: 'helper', model: scriptedModel() });
    const server = chatServer(agent, { protocols: [a2a()], hosts: ['localhost', 'a.example'] });
    const asked = new Request('http://localhost:3000/.well-known/agent-card.json', { headers });
    const card = (await (await server.respond(asked)).json()) as { url: string };
    expect(card.url).toBe(url);
    await server.close();
  });

  it('has a card that anyone may read, for both versions of the protocol', async () => {
    const agent = createAgent({ name: 'helper', model: scriptedModel() });
    const skills = [{ id: 'x', name: 'X', description: 'Does x.', tags: ['t'] }];
    const server = chatServer(agent, {
      protocols: [a2a({ path: '/agents/x', description: 'Helps.', version: '2.1.0', skills })],
      user: () => undefined,
    });
    const get = (url: string) => server.respond(new Request(url));
    const card = await get('http://a.example/.well-known/agent-card.json');
    const url = 'http://a.example/agents/x';
    expect(await card.json()).toMatchObject({
      ...{ name: 'helper', description: 'Helps.', version: '2.1.0', url },
      ...{ protocolVersion: '0.3.0', preferredTransport: 'JSONRPC' },
      supportedInterfaces: [
        { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
      ],
      capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
      skills: [{ ...skills[0], examples: [] }],
    });
    expect((await get(url)).status).toBe(405);
    const asked = new Request(url, { method: 'POST', body: '{}' });
    expect((await server.respond(asked)).status).toBe(401);
  });

  it('speaks 0.3 with clients of that version', () => {
    const model = scriptedModel([toolCall('ask', { question: 'Where?' })], [text('Oslo, then.')]);
    const agent = createAgent({ name: 'helper', model, tools: [ask] });
    return serving(agent, async ({ url }) => {
      const options = { legacyCompat: { enabled: true } };
      const card = (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as AgentCard;
      const old = {
        ...card,
        supportedInterfaces: card.supportedInterfaces.filter((it) => it.protocolVersion === '0.3'),
      };
      const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory(options)] });
      const client = await factory.createFromAgentCard(old);
      expect(client.protocolVersion).toBe('0.3');
      const first = await readStream(client.sendMessageStream(saying('Go.')));
      expect(first.lines.at(-1)).toMatch(/^input_required Where\?/);
      const { id: taskId } = first.task;
      const second = await readStream(client.sendMessageStream(saying('Oslo', { taskId })));
      expect([second.answer, second.lines.at(-1)]).toEqual(['Oslo, then.', 'completed']);
      const found = await client.getTask({ tenant: '', id: taskId });
      expect(shortOf(found).state).toBe('completed');
      expect(await codeOf(client.getTask({ tenant: '', id: 'none' }))).toBe(notFound);
    });
  });

  it('takes files and data, and answers with files and structured output', () => {
    const city = jsonSchema({ type: 'object', properties: { city: { type: 'string' } } });
    const model = scriptedModel([text('{"city":"Oslo"}')]);
    const draw = tool({
      name: 'draw',
      description: 'Draws.',
      run: () => {
        const source = { kind: 'base64', mediaType: 'image/png', data: 'AAEC' } as const;
        return toolOutput({ content: [{ type: 'image', source }], finalAnswer: true });
      },
    });
    const drawing = createAgent({
      name: 'b',
      model: scriptedModel([toolCall('draw')]),
      tools: [draw],
    });
    return serving(createAgent({ name: 'a', model, use: [output(city)] }), async (served) => {
      const client = await clientOf(served);
      const value = Buffer.from([1, 2, 3]);
      const image = {
        ...textPart(''),
        content: { $case: 'raw', value },
        mediaType: 'image/png',
      } as const;
      const message = messageOf(
        'user',
        [textPart('Where?'), image, ...(saying({ zoom: 2 }).message?.parts ?? [])],
        {
          ...{ messageId: 'm', contextId: 'c', taskId: '' },
        },
      );
      const task = taskIn(await client.sendMessage({ ...saying(''), message }));
      expect(
        task.artifacts.map(({ artifactId, parts }) => [artifactId, parts[0]?.content]),
      ).toEqual([
        ['answer', { $case: 'text', value: '{"city":"Oslo"}' }],
        ['output', { $case: 'data', value: { city: 'Oslo' } }],
      ]);
      expect(model.requests[0]?.messages[0]?.content).toEqual([
        { type: 'text', text: 'Where?' },
        { type: 'image', source: { kind: 'base64', mediaType: 'image/png', data: 'AQID' } },
        { type: 'text', text: '{"zoom":2}' },
      ]);
      await serving(drawing, async (other) => {
        const drawn = taskIn(await (await clientOf(other)).sendMessage(saying('Draw.')));
        expect(drawn.artifacts[0]?.parts[0]?.content).toEqual({
          ...{ $case: 'raw', value: Buffer.from([0, 1, 2]) },
        });
      });
    });
  });
});

describe('the tools of an agent over A2A', () => {
  const query = tool({ name: 'query', description: 'Queries.', run: () => of('half', 'whole') });
  const broken = tool({
    name: 'broken',
    description: 'Fails.',
    run: () => throwError(() => new Error('password 123')),
  });
  const answers = () =>
    [
      [text('Looking.'), toolCall('query', {}, 'q'), toolCall('broken', {}, 'b')],
      [text('Done.')],
    ] as const;

  it('run in parallel: what the model says beside them is a status, and their errors are hidden', () => {
    const model = scriptedModel(...answers());
    const agent = createAgent({ name: 'helper', model, tools: [query, broken] });
    return serving(agent, async (served) => {
      const client = await clientOf(served);
      const { lines, answer, task } = await readStream(client.sendMessageStream(saying('Go.')));
      expect(lines).toEqual([
        ...['task submitted', 'working', '= Looking.', 'working Looking.'],
        ...['= Done.', 'completed'],
      ]);
      expect(answer).toBe('Done.');
      const found = await client.getTask({ tenant: '', id: task.id });
      expect(found.artifacts.map(({ parts }) => textOf(parts))).toEqual(['Done.']);
      expect(found.history.map(({ parts }) => textOf(parts))).toEqual(['Go.', 'Looking.']);
      expect(JSON.stringify(found)).not.toContain('password');
    });
  });

  it("show their progress with the option 'progress'", () => {
    const model = scriptedModel(...answers());
    const agent = createAgent({ name: 'helper', model, tools: [query, broken] });
    const run = async (progress: boolean) => {
      const shown: unknown[] = [];
      const test = async (served: { readonly url: string }) => {
        const client = await clientOf(served);
        for await (const { payload } of client.sendMessageStream(saying('Go.'))) {
          if (payload?.$case === 'statusUpdate')
            shown.push(payload.value.metadata?.['millrace']?.tool);
        }
      };
      await serving(agent, test, {}, { progress });
      return shown.filter((it) => it !== undefined);
    };
    return run(true).then((shown) => {
      expect(shown).toHaveLength(6);
      expect(shown).toEqual(
        expect.arrayContaining([
          { toolCallId: 'q', name: 'query', status: 'started' },
          { toolCallId: 'q', name: 'query', status: 'running', progress: 'half' },
          { toolCallId: 'q', name: 'query', status: 'done' },
          { toolCallId: 'b', name: 'broken', status: 'failed' },
        ]),
      );
      expect(JSON.stringify(shown)).not.toContain('password');
    });
  });

  it('may ask the client: the task requires input, and the next message brings it', () => {
    const model = scriptedModel(
      [text('One moment.'), toolCall('ask', { question: 'Which city?' }, 'a')],
      [text('Oslo is fine.')],
      [text('Next.')],
    );
    const agent = createAgent({ name: 'helper', model, tools: [ask] });
    return serving(agent, async (served) => {
      const client = await clientOf(served);
      const asked = taskIn(await client.sendMessage(saying('Book it.')));
      const { id: taskId, contextId } = asked;
      expect(shortOf(asked)).toEqual({
        ...{ state: 'input_required', answer: '' },
        says: 'Which city?{"toolCallId":"a","tool":"ask","request":{"question":"Which city?"}}',
      });
      // A client that joins gets the question.
      const joined = await readStream(client.resubscribeTask({ tenant: '', id: taskId }));
      expect(joined.lines).toEqual(['task input_required']);
      const other = client.sendMessage(saying('Well?', { contextId }));
      expect(await codeOf(other)).toBe(unsupported);
      const wrongTask = client.sendMessage(saying('Oslo', { taskId, contextId: 'other' }));
      expect(await codeOf(wrongTask)).toBe(malformed);

      const ended = await readStream(client.sendMessageStream(saying('Oslo', { taskId })));
      expect(ended.task.id).toBe(taskId);
      expect(ended.lines).toEqual(['task submitted', 'working', '= Oslo is fine.', 'completed']);
      expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
        { type: 'tool_result', toolCallId: 'a', content: [{ text: 'Oslo' }] },
      ]);
      const found = await client.getTask({ tenant: '', id: taskId });
      expect(shortOf(found)).toEqual({ state: 'completed', answer: 'Oslo is fine.', says: '' });
      expect(found.history.map(({ parts }) => textOf(parts.slice(0, 1)))).toEqual([
        ...['Book it.', 'One moment.', 'Which city?', 'Oslo'],
      ]);
      expect(await codeOf(client.sendMessage(saying('More.', { taskId })))).toBe(unsupported);
      const next = taskIn(await client.sendMessage(saying('More.', { contextId })));
      expect(shortOf(next).answer).toBe('Next.');
      expect(shortOf(await client.getTask({ tenant: '', id: taskId })).answer).toBe(
        'Oslo is fine.',
      );
    });
  });

  it('T13: waits for the application: no client is asked or can answer or cancel it, and the application continues it', async () => {
    const theirs = tool({
      name: 'theirs',
      description: 'Waits.',
      run: () => suspend({ secret: 'who decides' }, { from: 'program' }),
    });
    const model = scriptedModel(
      [toolCall('ask', { question: 'Which city?' }, 'a'), toolCall('theirs', {}, 't')],
      [toolCall('theirs', {}, 'u')],
      [text('It is done.')],
    );
    const agent = createAgent({ name: 'helper', model, tools: [ask, theirs] });
    const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
    const task = await serving(
      agent,
      async (served) => {
        const client = await clientOf(served);
        const asked = taskIn(await client.sendMessage(saying('Book it.')));
        const { id: taskId, contextId } = asked;
        // It is asked for its own part only.
        expect(shortOf(asked)).toEqual({
          ...{ state: 'input_required', answer: '' },
          says: 'Which city?{"toolCallId":"a","tool":"ask","request":{"question":"Which city?"}}',
        });
        for (const forged of [
          { toolCallId: 't', result: true },
          { toolCallId: 'a', result: 'Oslo', t: true },
        ]) {
          const sent = client.sendMessage(saying(forged, { taskId }));
          if (forged.toolCallId === 't') expect(await codeOf(sent)).toBe(malformed);
          else expect(shortOf(taskIn(await sent))).toMatchObject({ state: 'working', says: '' });
        }
        const held = await client.getTask({ tenant: '', id: taskId });
        expect(shortOf(held)).toEqual({ state: 'working', answer: '', says: '' });
        expect(held.metadata).toEqual({ millrace: { reason: 'suspended', iterations: 0 } });
        const answers = [{ toolCallId: 't', result: true }, { result: true }, 'yes'];
        for (const forged of answers) {
          expect(await codeOf(client.sendMessage(saying(forged, { taskId })))).toBe(unsupported);
          expect(await codeOf(client.sendMessage(saying(forged, { contextId })))).toBe(unsupported);
        }
        expect(await codeOf(client.cancelTask({ tenant: '', id: taskId, metadata: {} }))).toBe(
          notCancelable,
        );
        const joined = await readStream(client.resubscribeTask({ tenant: '', id: taskId }));
        expect(joined.lines).toEqual(['task working']);
        await lastValueFrom(served.close$, { defaultValue: undefined });
        return asked;
      },
      { store },
    );
    expect(model.requests).toHaveLength(1);
    // It is stored who answered.
    expect(JSON.stringify(await lastValueFrom(store.sessions.load$(task.contextId)))).toMatch(
      /Oslo"\}\],"isError":false,"from":"client"/u,
    );
    const kept = keepSessions(agent, store.sessions, { journal: journal(store.calls) });
    for (const [id, reason] of [
      ['t', 'suspended'],
      ['u', 'answer'],
    ] as const) {
      const opened = await kept.open(task.contextId);
      expect((await opened.call(toolResults({ [id]: 'Yes.' }))).reason).toBe(reason);
      await opened.close();
    }
    await serving(
      agent,
      async (served) => {
        const client = await clientOf(served);
        const ended = await client.getTask({ tenant: '', id: task.id });
        expect(shortOf(ended)).toEqual({ state: 'completed', answer: 'It is done.', says: '' });
        expect(JSON.stringify(ended)).not.toContain('secret');
      },
      { store },
    );
  });

  it('may ask several questions: each answer names its own', () => {
    const model = scriptedModel(
      [toolCall('ask', { question: 'From?' }, 'a'), toolCall('ask', { question: 'To?' }, 'b')],
      [text('Booked.')],
    );
    const agent = createAgent({ name: 'helper', model, tools: [ask] });
    return serving(agent, async (served) => {
      const client = await clientOf(served);
      const { id: taskId, contextId } = taskIn(await client.sendMessage(saying('Book it.')));
      const bring = (...results: readonly object[]) => {
        const parts = results.flatMap((result) => saying(result).message?.parts ?? []);
        const message = messageOf('user', parts, { messageId: 'x', taskId, contextId });
        return client.sendMessage({ ...saying(''), message });
      };
      expect(await codeOf(client.sendMessage(saying('Oslo', { taskId })))).toBe(malformed);
      expect(await codeOf(bring({ toolCallId: 'a', result: 'Oslo' }))).toBe(malformed);
      expect(await codeOf(bring({ toolCallId: 'c', result: 'Oslo' }))).toBe(malformed);
      const task = await bring(
        { toolCallId: 'b', result: { city: 'Rome' } },
        { toolCallId: 'a', result: 'Oslo' },
      );
      expect(shortOf(taskIn(task)).answer).toBe('Booked.');
      const results = model.requests[1]?.messages.at(-1)?.content;
      expect(results).toMatchObject([
        { toolCallId: 'a', content: [{ text: 'Oslo' }] },
        { toolCallId: 'b', content: [{ text: '{"city":"Rome"}' }] },
      ]);
    });
  });

  it('wait for an approval: the client decides with its next message', () => {
    const approvals = approvalQueue({ key: new Uint8Array(32), edits: true });
    const paid: unknown[] = [];
    const pay = requireApproval(
      tool({
        name: 'pay',
        description: 'Pays.',
        input: jsonSchema({ type: 'object', properties: { amount: { type: 'number' } } }),
        run: (input) => {
          paid.push(input);
          return 'Paid.';
        },
      }),
      approvals.approve,
    );
    const turn = [toolCall('pay', { amount: 5 }), finish()];
    const model = scriptedModel(turn, turn, [text('Paid.')], turn, [text('Not paid.')]);
    const agent = createAgent({ name: 'helper', model, tools: [pay] });
    return serving(
      agent,
      async (served) => {
        const client = await clientOf(served);
        const first = await readStream(client.sendMessageStream(saying('Pay twice.')));
        expect(first.lines.at(-1)).toMatch(/^input_required Approve the tool 'pay'\?.*"amount":5/);
        const { id: taskId } = first.task;
        const stated = await client.getTask({ tenant: '', id: taskId });
        expect(shortOf(stated).state).toBe('input_required');
        expect(JSON.stringify(stated)).not.toContain('token');
        expect(await codeOf(client.sendMessage(saying('perhaps', { taskId })))).toBe(malformed);
        // Two answers to one question are none.
        const named = { toolCallId: String(waitingIn(stated)) };
        for (const [yes, no] of [
          [{ approved: true }, { approved: false }],
          [
            { ...named, approved: true },
            { ...named, approved: false },
          ],
          [{ ...named, approved: true }, { approved: false }],
          [{ approved: true }, 'no'],
          ['yes', { ...named, approved: false }],
        ]) {
          const parts = [yes, no].flatMap((it) => saying(it).message?.parts ?? []);
          const ids = { messageId: 'x', taskId, contextId: stated.contextId };
          const message = messageOf('user', parts, ids);
          const sent = client.sendMessage({ ...saying(''), message });
          expect([await codeOf(sent), paid]).toEqual([malformed, []]);
        }
        // The second payment waits as well.
        const yes = taskIn(await client.sendMessage(saying('Yes', { taskId })));
        expect([shortOf(yes).state, paid]).toEqual(['input_required', [{ amount: 5 }]]);
        const decision = { approved: true, input: { amount: 4 } };
        const last = await readStream(client.sendMessageStream(saying(decision, { taskId })));
        expect([last.answer, paid.at(-1)]).toEqual(['Paid.', { amount: 4 }]);
        const other = taskIn(await client.sendMessage(saying('Pay.')));
        const no = await client.sendMessage(saying('no', { taskId: other.id }));
        expect([shortOf(taskIn(no)).answer, paid.length]).toEqual(['Not paid.', 2]);
      },
      { approvals },
    );
  });
});

describe('a task', () => {
  it('is joined by clients: they get its current state and all updates', () => {
    const { answer, say, end } = held();
    const agent = createAgent({ name: 'helper', model: scriptedModel(answer) });
    return serving(agent, async (served) => {
      const client = await clientOf(served);
      say('One');
      const { task } = await readStream(
        client.sendMessageStream(saying('Count.')),
        (line) => line === '= One',
      );
      const { id } = task;
      const joined = readStream(client.resubscribeTask({ tenant: '', id }), (line) => {
        if (line === 'task working') say(' two');
        if (line === '+  two') end();
        return false;
      });
      const { lines, answer: whole, task: seen } = await joined;
      expect([shortOf(seen).answer, whole]).toEqual(['One', 'One two']);
      expect(lines).toEqual(['task working', '+  two', 'completed']);
      const again = readStream(client.resubscribeTask({ tenant: '', id }));
      expect(await codeOf(again)).toBe(unsupported);
    });
  });

  it('is returned immediately on request, and accepts messages while it works', () => {
    let turns = 0;
    const look = tool({ name: 'look', description: 'Looks.', run: () => timer(0) });
    /** Works until it gets the second message. */
    const model: Model = {
      name: 'busy',
      stream$: ({ messages }) => {
        turns += 1;
        const isDone = JSON.stringify(messages).includes('And two.');
        return from([isDone ? text('Both done.') : toolCall('look', { turns }), finish()]);
      },
    };
    const limits = { maxIterations: 100_000 };
    const agent = createAgent({ name: 'helper', model, tools: [look], limits });
    return serving(agent, async (served) => {
      const client = await clientOf(served);
      const task = taskIn(await client.sendMessage({ ...saying('One.'), configuration: atOnce }));
      expect(['submitted', 'working']).toContain(shortOf(task).state);
      const said = saying('And two.', { taskId: task.id });
      const { task: same, answer } = await readStream(client.sendMessageStream(said));
      expect([same.id, answer]).toEqual([task.id, 'Both done.']);
    });
  });

  it('is cancelled: while it works, while it waits for its turn, and while it waits for input', () => {
    const model = scriptedModel(
      () => NEVER,
      [toolCall('ask', { question: 'Q?' })],
      () => NEVER,
      [text('Free.')],
    );
    const agent = createAgent({ name: 'helper', model, tools: [ask] });
    return serving(agent, async (served) => {
      const client = await clientOf(served);
      const contextId = 'chat';
      const begin = async () =>
        taskIn(await client.sendMessage({ ...saying('?', { contextId }), configuration: atOnce }))
          .id;
      const cancel = async (id: string) =>
        shortOf(await client.cancelTask({ tenant: '', id, metadata: {} })).state;
      const running = await begin();
      const queued = await begin();
      expect(shortOf(await client.getTask({ tenant: '', id: queued })).state).toBe('submitted');
      expect(await cancel(queued)).toBe('canceled');
      const following = readStream(client.resubscribeTask({ tenant: '', id: running }));
      expect(await cancel(running)).toBe('canceled');
      expect((await following).lines.at(-1)).toBe('canceled');
      expect(await codeOf(cancel(running))).toBe(notCancelable);

      const asking = taskIn(await client.sendMessage(saying('?', { contextId })));
      expect(await cancel(asking.id)).toBe('canceled');
      expect(shortOf(await client.getTask({ tenant: '', id: asking.id })).state).toBe('canceled');
      const free = taskIn(await client.sendMessage(saying('?', { contextId })));
      expect(shortOf(free).answer).toBe('Free.');
    });
  });

  it('fails with a message for clients, and without the cause', () => {
    const fault = () =>
      throwError(() => new MillraceError('server', 'key sk-1', { retryable: false }));
    const model = scriptedModel(fault, [toolCall('ask', { question: 'Q?' })], fault, [
      text('Well.'),
    ]);
    const errors: string[] = [];
    const agent = createAgent({ name: 'helper', model, tools: [ask] });
    return serving(
      agent,
      async (served) => {
        const client = await clientOf(served);
        const task = taskIn(await client.sendMessage(saying('?')));
        expect(shortOf(task)).toMatchObject({ state: 'failed', says: expect.stringMatching(/\w/) });
        expect(task.metadata).toEqual({ millrace: { code: 'server' } });
        expect(JSON.stringify(task)).not.toContain('sk-1');
        expect(errors).toEqual(['key sk-1']);
        // An answer that could not be processed can be sent again.
        const { id: taskId } = taskIn(await client.sendMessage(saying('?')));
        const failed = await client.sendMessage(saying('Oslo', { taskId }));
        expect(shortOf(taskIn(failed))).toMatchObject({
          ...{ state: 'input_required', says: expect.stringMatching(/again\.\nQ\?/) },
        });
        const found = await client.getTask({ tenant: '', id: taskId });
        expect(shortOf(found).state).toBe('input_required');
        const again = await client.sendMessage(saying('Oslo', { taskId }));
        expect(shortOf(taskIn(again)).answer).toBe('Well.');
      },
      { onError: ({ message }) => errors.push(message) },
    );
  });

  it('replaces what was streamed: for a retry, and for an edited answer', () => {
    const broken = () =>
      concat(
        of<ModelChunk>({ type: 'text', text: 'Brok' }),
        throwError(() => new MillraceError('server', 'cut')),
      );
    const model = scriptedModel(broken, [text('Whole.')]);
    const patient = retry(model, { retryPartial: true, minMs: 1 });
    const agent = createAgent({ name: 'helper', model: patient });
    return serving(agent, async (served) => {
      const client = await clientOf(served);
      const { lines, task } = await readStream(client.sendMessageStream(saying('?')));
      expect(lines).toEqual(['task submitted', 'working', '= Brok', '= Whole.', 'completed']);
      const found = await client.getTask({ tenant: '', id: task.id });
      expect(shortOf(found).answer).toBe('Whole.');
    });
  });

  it('of another user is not found', () => {
    const model = scriptedModel([toolCall('ask', { question: 'Q?' })]);
    const agent = createAgent({ name: 'helper', model, tools: [ask] });
    const user = ({ headers }: Request) => headers.get('authorization') ?? undefined;
    return serving(
      agent,
      async ({ url }) => {
        const clientAs = async (authorization: string) => {
          const fetchImpl = (input: unknown, init: RequestInit = {}) =>
            fetch(String(input), { ...init, headers: { ...init.headers, authorization } });
          const transport = new JsonRpcTransportFactory({ fetchImpl: fetchImpl as typeof fetch });
          return new ClientFactory({ transports: [transport] }).createFromUrl(url);
        };
        const ann = await clientAs('ann');
        const { id } = taskIn(await ann.sendMessage(saying('?', { contextId: 'x' })));
        expect(shortOf(await ann.getTask({ tenant: '', id })).state).toBe('input_required');
        const bob = await clientAs('bob');
        expect(await codeOf(bob.getTask({ tenant: '', id }))).toBe(notFound);
        expect(await codeOf(bob.cancelTask({ tenant: '', id, metadata: {} }))).toBe(notFound);
        expect(await codeOf(bob.sendMessage(saying('A', { taskId: id })))).toBe(notFound);
        expect(await codeOf(readStream(bob.resubscribeTask({ tenant: '', id })))).toBe(notFound);
        const streamed = readStream(bob.sendMessageStream(saying('A', { taskId: id })));
        expect(await codeOf(streamed)).toBe(notFound);
        const nobody = await new ClientFactory().createFromUrl(url);
        await expect(nobody.getTask({ tenant: '', id })).rejects.toThrow('401');
      },
      { user },
    );
  });
});

describe('a request', () => {
  const agent = createAgent({ name: 'helper', model: scriptedModel() });
  const post = (url: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${url}/api/a2a`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });

  it('that is malformed, or asks for something that is not there, is refused', () =>
    serving(agent, async ({ url }) => {
      const tried = async (body: unknown, headers: Readonly<Record<string, string>> = {}) => {
        const response = await post(url, body, headers);
        const answer = (await response.json()) as { error?: { code: number }; id?: unknown };
        return [response.status, answer.error?.code, answer.id];
      };
      const rpc = (method: string, params: unknown = {}) => ({
        jsonrpc: '2.0',
        id: 7,
        method,
        params,
      });
      expect(await tried('{"jsonrpc":')).toEqual([400, -32700, null]);
      expect(await tried([rpc('GetTask')])).toEqual([400, -32600, null]);
      expect(await tried({ id: 7, method: 'GetTask' })).toEqual([200, malformed, 7]);
      expect(await tried(rpc('Nothing'))).toEqual([200, -32601, 7]);
      expect(await tried(rpc('tasks/nothing'))).toEqual([200, -32601, 7]);
      expect(await tried(rpc('GetTask', []))).toEqual([200, malformed, 7]);
      expect(await tried(rpc('GetTask', { id: 'none' }))).toEqual([200, notFound, 7]);
      expect(await tried(rpc('GetTask', { id: '../x' }))).toEqual([200, notFound, 7]);
      expect(await tried(rpc('SendMessage', {}))).toEqual([200, malformed, 7]);
      const empty = [[[]], '', []].map((id) => rpc('GetTask', { id }));
      for (const body of [...empty, rpc('CancelTask'), rpc('tasks/get', { id: '' })]) {
        expect(await tried(body)).toEqual([200, notFound, 7]);
      }
      const version = { 'a2a-version': '9.9' };
      expect(await tried(rpc('GetTask', { id: 'x' }), version)).toEqual([200, -32009, 7]);
      const wrong = await fetch(`${url}/api/a2a`, { method: 'POST', body: '{}' });
      expect(wrong.status).toBe(415);

      const client = await clientOf({ url });
      const send = (change: object) => {
        const { message } = saying('?');
        return codeOf(
          client.sendMessage({ ...saying('?'), message: { ...message, ...change } as never }),
        );
      };
      expect(await send({ messageId: '' })).toBe(malformed);
      expect(await send({ role: 2 })).toBe(malformed);
      expect(await send({ parts: [] })).toBe(malformed);
      expect(await send({ parts: [textPart(' ')] })).toBe(malformed);
      expect(await send({ contextId: '../other' })).toBe(malformed);
      expect(await send({ taskId: 'unknown' })).toBe(notFound);
      const byUrl = { ...textPart(''), content: { $case: 'url', value: 'http://localhost/x' } };
      expect(await send({ parts: [byUrl] })).toBe(noSuchType);
      const raw = {
        ...textPart(''),
        mediaType: 'x',
        content: { $case: 'raw', value: Buffer.of(1) },
      };
      expect(await send({ parts: [raw] })).toBe(malformed);
      const push = {
        ...{ tenant: '', id: '', taskId: 't', url: 'http://x', token: '' },
        authentication: undefined,
      };
      expect(await tried(rpc('CreateTaskPushNotificationConfig', push))).toEqual([200, noPush, 7]);
      const configuration = { taskPushNotificationConfig: push };
      const { message } = saying('?');
      const pushed = {
        message: { ...message, role: 'ROLE_USER', parts: [{ text: '?' }] },
        configuration,
      };
      expect(await tried(rpc('SendMessage', pushed))).toEqual([200, noPush, 7]);
      expect(await tried(rpc('ListTasks'))).toEqual([200, unsupported, 7]);
      expect(await tried(rpc('GetExtendedAgentCard'))).toEqual([200, unsupported, 7]);
    }));

  it.each(['1.0', '0.3'])('that is nested deeply is refused, in %s', async (version) => {
    const errors: string[] = [];
    const onError = ({ message }: Error): void => void errors.push(message);
    await serving(
      createAgent({ name: 'helper', model: scriptedModel([text('Yes.')]) }),
      async ({ url }) => {
        const isNew = version === '1.0';
        const headers: Record<string, string> = isNew ? { 'a2a-version': version } : {};
        const sent = async (
          part: string,
          more = '',
          method = isNew ? 'SendMessage' : 'message/send',
        ) => {
          const kind = isNew ? '' : '"kind":"message",';
          const role = isNew ? 'ROLE_USER' : 'user';
          const message = `{${kind}"messageId":"m","role":"${role}","parts":[${part}]${more}}`;
          const body = `{"jsonrpc":"2.0","id":7,"method":"${method}","params":{"message":${message}}}`;
          const response = await post(url, body, headers);
          const { error, id } = (await response.json()) as { error?: { code: number }; id: number };
          return [response.status, error?.code, id];
        };
        const data = (value: string) =>
          isNew ? `{"data":${value}}` : `{"kind":"data","data":{"a":${value}}}`;
        const plain = isNew ? '{"text":"?"}' : '{"kind":"text","text":"?"}';
        const lists = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
        const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
        const refused = [200, malformed, 7];
        for (const depth of [1_000, 10_000, 100_000]) {
          expect(await sent(data(lists(depth)))).toEqual(refused);
          expect(await sent(data(objects(depth)))).toEqual(refused);
          expect(await sent(plain, `,"metadata":${objects(depth)}`)).toEqual(refused);
        }
        const streams = isNew ? 'SendStreamingMessage' : 'message/stream';
        expect(await sent(data(lists(10_000)), '', streams)).toEqual(refused);
        expect(await sent(data(lists(100)))).toEqual([200, undefined, 7]);
      },
      { onError },
    );
    expect(errors).toEqual([]);
  });

  it('caused by the server is reported, and reveals nothing to the client', async () => {
    const errors: string[] = [];
    const options = { maxCalls: 1, onError: ({ message }: MillraceError) => errors.push(message) };
    const busy = createAgent({ name: 'helper', model: scriptedModel(() => NEVER) });
    await serving(
      busy,
      async (served) => {
        const client = await clientOf(served);
        await readStream(client.sendMessageStream(saying('?')), (line) => line === 'working');
        await expect(client.sendMessage(saying('?'))).rejects.toThrow('503');
        expect(errors).toEqual([expect.stringContaining('maxCalls')]);
      },
      options,
    );
  });

  it('checks its options', () => {
    expect(() => a2a({ path: 'x' })).toThrow("'path'");
    expect(() => a2a({ url: 'x' })).toThrow("'url'");
    expect(() => a2a({ skills: [{ id: 'x' }] as never })).toThrow("'skills'");
  });
});
