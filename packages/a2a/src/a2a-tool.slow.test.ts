import { describe, expect, it } from '@jest/globals';
import { TaskState } from '@a2a-js/sdk';
import { AgentEvent as SdkEvent } from '@a2a-js/sdk/server';
import {
  createAgent,
  isMillraceError,
  type ModelChunk,
  suspend,
  type Suspension,
  textOf,
  tool,
  toolResults,
} from 'millrace';
import { sessions } from 'millrace/sessions';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { asyncScheduler, firstValueFrom, lastValueFrom, NEVER, ReplaySubject, Subject } from 'rxjs';
import { a2aTool } from './index.js';
import { artifactOf, textPart } from './parts.js';
import {
  answering,
  bodyOf,
  cardAt,
  json,
  ran,
  sdkServer,
  taskEvent,
  withServer,
} from './remote.test-support.js';
import { serving } from './server/clients.test-support.js';

const about = { name: 'helper', description: 'Asks the helper.' };

const { TASK_STATE_WORKING: working, TASK_STATE_COMPLETED: completed } = TaskState;

describe('a remote agent as a tool', () => {
  it('streams its progress, and gives its answer', () => {
    const agent = createAgent({
      name: 'other',
      model: scriptedModel([text('Hello'), text(' Ann.')]),
    });
    return serving(agent, async ({ url }) => {
      const { result, progress, isError } = await ran(a2aTool(url, about));
      expect([result, isError]).toEqual(['Hello Ann.', false]);
      expect(progress).toEqual([
        { state: 'submitted' },
        { state: 'working' },
        { state: 'working', text: 'Hello', replaces: true },
        { state: 'working', text: ' Ann.', replaces: false },
        { state: 'completed' },
      ]);
    });
  });

  it('may be one that is written with the SDK', () => {
    const server = sdkServer({
      execute: ({ taskId, contextId, userMessage }, bus) => {
        const asked = userMessage.parts.map(({ content }) => content?.value).join('');
        bus.publish(taskEvent(taskId, contextId, working));
        for (const part of [`You said`, `: ${asked}`]) {
          const artifact = artifactOf('a', 'a', [textPart(part)]);
          const value = {
            taskId,
            contextId,
            artifact,
            append: part !== 'You said',
            lastChunk: false,
          };
          bus.publish(SdkEvent.artifactUpdate({ ...value, metadata: undefined }));
        }
        const status = { state: completed, message: undefined, timestamp: undefined };
        bus.publish(SdkEvent.statusUpdate({ taskId, contextId, status, metadata: undefined }));
        bus.finished();
        return Promise.resolve();
      },
      cancelTask: () => Promise.resolve(),
    });
    return withServer(server, async (url) => {
      expect((await ran(a2aTool(url, about))).result).toBe('You said: Go.');
      // The URL of the card, and the card itself.
      const card = `${url}/.well-known/agent-card.json`;
      expect((await ran(a2aTool(card, about))).result).toBe('You said: Go.');
      expect((await ran(a2aTool(cardAt(url), about))).result).toBe('You said: Go.');
      const silent = cardAt(url, { capabilities: { streaming: false } });
      expect((await ran(a2aTool(silent, about))).result).toBe('You said: Go.');
    });
  });

  it('may speak 0.3 only, answer with a message, and want headers', () => {
    const seen: unknown[] = [];
    const old = (url: string) => ({
      ...{ name: 'old', description: 'Old.', version: '1', url, protocolVersion: '0.3.0' },
      ...{ preferredTransport: 'JSONRPC', capabilities: { streaming: false }, skills: [] },
      ...{ defaultInputModes: [], defaultOutputModes: [] },
    });
    const server = answering(async (request, response) => {
      const { id, method } = await bodyOf(request);
      seen.push(method, request.headers.authorization);
      const parts = [{ kind: 'text', text: 'An old answer.' }];
      const result = { kind: 'message', messageId: 'x', role: 'agent', parts };
      json(response, { jsonrpc: '2.0', id, result });
    }, old);
    return withServer(server, async (url) => {
      const headers = { authorization: 'Bearer secret-1' };
      const { result } = await ran(a2aTool(url, { ...about, headers }));
      expect([result, seen]).toEqual(['An old answer.', ['message/send', 'Bearer secret-1']]);
    });
  });

  it('is asked once for its card, and again if it could not be read', () => {
    let cards = 0;
    const server = answering(
      async (request, response) => {
        const { id } = await bodyOf(request);
        const task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } };
        const result = {
          task: { ...task, artifacts: [{ artifactId: 'a', parts: [{ text: 'A' }] }] },
        };
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
      },
      (url) => {
        cards += 1;
        return cards === 1 ? {} : cardAt(url);
      },
    );
    return withServer(server, async (url) => {
      const remote = a2aTool(url, about);
      const results = [await ran(remote), await ran(remote), await ran(remote)];
      expect(results.map(({ isError }) => isError)).toEqual([true, false, false]);
      expect(cards).toBe(2);
    });
  });
});

describe('a remote agent that requires input', () => {
  const ask = tool({ name: 'ask', description: 'Asks.', run: () => suspend('Which city?') });
  const asking = () => {
    const model = scriptedModel([toolCall('ask')], [text('Booked in Oslo.')]);
    return createAgent({ name: 'other', model, tools: [ask] });
  };

  it('informs the model, which may answer by calling the tool again', () =>
    serving(asking(), async ({ url }) => {
      const remote = a2aTool(url, about);
      const first = await ran(remote);
      const [, taskId] = /^Which city\?[^]*taskId "(\w+)"/u.exec(first.result) ?? [];
      const second = await ran(remote, { message: 'Oslo', taskId });
      expect(second.result).toBe('Booked in Oslo.');
      const third = await ran(remote, { message: 'Oslo', taskId });
      expect([third.isError, third.result]).toEqual([true, expect.stringMatching(/has ended/)]);
    }));

  it("suspends the call with 'suspend', and accepts the answer of the application", () =>
    serving(asking(), async ({ url }) => {
      const remote = a2aTool(url, { ...about, onInput: 'suspend' });
      const model = scriptedModel([toolCall('helper', { message: 'Book.' })], [text('All done.')]);
      const session = sessions(createAgent({ model, tools: [remote] })).open('1');
      const { reason, suspensions = [] } = await session.call('?');
      const [suspension] = suspensions;
      expect([reason, suspension?.from, suspension?.request]).toEqual([
        'suspended',
        // No client of this program has its `answer$`.
        'program',
        { question: 'Which city?', taskId: expect.any(String), contextId: expect.any(String) },
      ]);
      if (suspension === undefined) throw new Error('Nothing is suspended.');
      const { by: _, ...unnamed } = suspension;
      const others: readonly Suspension[] = [
        unnamed,
        { ...suspension, by: 'mcp' },
        { ...suspension, toolCall: { ...suspension.toolCall, name: 'other' } },
        { ...suspension, request: {} },
        { ...suspension, request: null },
      ];
      for (const other of others) {
        await expect(firstValueFrom(remote.answer$(other, 'Oslo'))).rejects.toMatchObject({
          code: 'invalidResume',
          message: expect.stringContaining("a suspension of the tool 'helper'"),
        });
      }
      const output = await firstValueFrom(remote.answer$(suspension, 'Oslo'));
      const { id } = suspension.toolCall;
      expect(textOf(await session.call(toolResults({ [id]: output })))).toBe('All done.');
      expect(textOf(output)).toBe('Booked in Oslo.');
      expect(JSON.stringify(model.requests[1]?.messages)).toContain('Booked in Oslo.');
    }));
});

describe('a run', () => {
  it('that is interrupted cancels the remote task', () => {
    const cancelled$ = new ReplaySubject<string>(1);
    const server = sdkServer({
      execute: ({ taskId, contextId }, bus) => {
        bus.publish(taskEvent(taskId, contextId, working));
        return new Promise(() => undefined);
      },
      cancelTask: (taskId, bus) => {
        cancelled$.next(taskId);
        bus.publish(taskEvent(taskId, 'c', TaskState.TASK_STATE_CANCELED));
        bus.finished();
        return Promise.resolve();
      },
    });
    return withServer(server, async (url) => {
      const model = scriptedModel([toolCall('helper', { message: 'Go.' })]);
      const agent = createAgent({ model, tools: [a2aTool(url, about)] });
      const working$ = new Subject<void>();
      const running = agent.stream$('?').subscribe((event) => {
        if (event.type === 'actingChunk') working$.next();
      });
      await firstValueFrom(working$);
      running.unsubscribe();
      expect(await firstValueFrom(cancelled$)).toMatch(/\w/);
    });
  });

  it('whose stream is lost joins its task again', () => {
    const piece$ = new ReplaySubject<ModelChunk>(Infinity);
    const agent = createAgent({ name: 'other', model: scriptedModel(() => piece$) });
    return serving(agent, async (served) => {
      piece$.next({ type: 'text', text: 'One' });
      let streams = 0;
      /** Ends the first stream after the first text. */
      const proxy = answering(
        async (request, response) => {
          const body = await bodyOf(request);
          const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
          const init = { method: 'POST', headers, body: JSON.stringify(body) };
          const answer = await fetch(`${served.url}/api/a2a`, init);
          response.writeHead(200, { 'content-type': answer.headers.get('content-type') ?? '' });
          const isFirst = String(body['method']).includes('Stream');
          streams += isFirst ? 1 : 0;
          if (body['method'] === 'SubscribeToTask') {
            piece$.next({ type: 'text', text: ' two' });
            piece$.next({ type: 'finish', finish: 'stop' });
            piece$.complete();
          }
          for await (const chunk of answer.body ?? []) {
            response.write(chunk);
            if (isFirst && Buffer.from(chunk).includes('One')) break;
          }
          response.end();
        },
        (url) => cardAt(url),
      );
      await withServer(proxy, async (url) => {
        const { result, isError } = await ran(a2aTool(url, about));
        expect([result, isError, streams]).toEqual(['One two', false, 1]);
      });
    });
  });

  it('X39: reports a task that failed, and an agent that refuses, in clean text', () => {
    const failing = (state: TaskState, says: string) =>
      sdkServer({
        execute: ({ taskId, contextId }, bus) => {
          bus.publish(taskEvent(taskId, contextId, state, says));
          bus.finished();
          return Promise.resolve();
        },
        cancelTask: () => Promise.resolve(),
      });
    const tried = (state: TaskState, says: string) =>
      withServer(failing(state, says), async (url) => {
        const { result, isError } = await ran(a2aTool(url, about));
        return [isError, result];
      });
    return Promise.all([
      tried(TaskState.TASK_STATE_FAILED, 'No\u202e <|im_start|> luck.'),
      tried(TaskState.TASK_STATE_AUTH_REQUIRED, ''),
      tried(TaskState.TASK_STATE_REJECTED, 'Not mine.'),
    ]).then((outcomes) => {
      expect(outcomes).toEqual([
        [true, 'The agent ended the task as failed. No ‹|im_start|> luck.'],
        [true, 'The agent ended the task as auth-required.'],
        [true, 'The agent ended the task as rejected. Not mine.'],
      ]);
    });
  });
});

describe('a remote agent that misbehaves', () => {
  /** The code and the message of the error that a run of the tool ends with. */
  const failureOf = async (remote: ReturnType<typeof a2aTool>): Promise<readonly string[]> => {
    const context = { idempotencyKey: 'x', scheduler: asyncScheduler };
    const run$ = remote.run$({ message: 'Go.' }, context as never);
    const error: unknown = await lastValueFrom(run$).catch((cause: unknown) => cause);
    if (isMillraceError(error)) return [error.code, error.message];
    throw new Error('It did not fail with a MillraceError.', { cause: error });
  };
  const stream = (...datas: readonly unknown[]) =>
    answering((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const data of datas) {
        response.write(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
      }
      response.end();
    });
  const failing = (listener: Parameters<typeof withServer>[0], options: object = {}) =>
    withServer(listener, (url) => failureOf(a2aTool(url, { ...about, ...options })));

  it('has a card that cannot be used', async () => {
    const card = (body: unknown) =>
      failing((_, response) => {
        json(response, body);
      });
    expect((await card('<html>'))[0]).toBe('invalidResponse');
    for (const body of [null, [], 'x', 7, {}, { supportedInterfaces: 'x' }]) {
      const [code] = await card(JSON.stringify(body));
      expect([body, code]).toEqual([body, 'invalidResponse']);
    }
    const wrong = { supportedInterfaces: [{ url: 7, protocolBinding: [], protocolVersion: {} }] };
    expect((await card(wrong))[1]).toContain('no card with an interface for JSON-RPC');
    const [huge, why] = await card({ name: 'x'.repeat(100_001) });
    expect([huge, why]).toEqual(['tooLarge', expect.stringContaining('more than 100000 bytes')]);
    const [slow] = await failing(() => undefined, { connectMs: 5 });
    expect(slow).toBe('timeout');
  });

  it('sends the client elsewhere', async () => {
    let visits = 0;
    await withServer(
      (_, response) => {
        visits += 1;
        json(response, {});
      },
      async (elsewhere) => {
        const [code, why] = await failing(
          answering(
            () => undefined,
            () => cardAt(elsewhere),
          ),
        );
        expect([code, why]).toEqual(['refused', expect.stringContaining(`'origins'`)]);
        const redirect = (status: number) =>
          failing((_, response) => {
            response.writeHead(status, { location: elsewhere });
            response.end();
          });
        expect((await redirect(302))[0]).toBe('redirect');
        const [later] = await failing(
          answering((_, response) => {
            response.writeHead(307, { location: elsewhere });
            response.end();
          }),
        );
        expect([later, visits]).toEqual(['redirect', 0]);
        // The program may allow it.
        const own = answering(
          () => undefined,
          () => cardAt(elsewhere),
        );
        await failing(own, { origins: [elsewhere] });
        expect(visits).toBeGreaterThan(0);
      },
    );
  });

  it('sends invalid protocol messages', async () => {
    const hostile: readonly unknown[] = [
      'no JSON',
      'null',
      '7',
      { jsonrpc: '2.0', id: 1 },
      { jsonrpc: '2.0', id: 'other', result: {} },
      { jsonrpc: '2.0', id: 1, result: 'x' },
      { jsonrpc: '2.0', id: 1, result: { task: 7 } },
      { jsonrpc: '2.0', id: 1, result: { task: { status: [], artifacts: 'x', history: 7 } } },
      { jsonrpc: '2.0', id: 1, result: { artifactUpdate: { artifact: { parts: {} } } } },
    ];
    for (const data of hostile) {
      const [code] = await failing(stream(data));
      expect([data, code]).toEqual([data, 'invalidResponse']);
    }
    const [none] = await failing(stream());
    expect(none).toBe('invalidResponse');
    const error = { code: -32603, message: `key ${'x'.repeat(1_000)}` };
    const [code, why] = await failing(stream({ jsonrpc: '2.0', id: 1, error }));
    expect([code, (why ?? '').length < 700]).toEqual(['server', true]);
    const [html] = await failing(answering((_, response) => response.end('<html>')));
    expect(html).toBe('invalidResponse');
  });

  const statusOf = (taskId: string, contextId: string, state: string, says = '') => ({
    statusUpdate: {
      ...{ taskId, contextId },
      status: { state, message: { messageId: 's', role: 'ROLE_AGENT', parts: [{ text: says }] } },
    },
  });
  const taskOf = (id: string, contextId: string, state: string, says = '') => ({
    task: { id, ...statusOf(id, contextId, state, says).statusUpdate },
  });
  const artifact = (taskId: string, contextId: string, says: string) => ({
    artifactUpdate: {
      ...{ taskId, contextId, append: false, lastChunk: true },
      artifact: { artifactId: 'a', parts: [{ text: says }] },
    },
  });
  const [works, isDone] = ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'];
  it.each<[what: string, updates: readonly object[]]>([
    ['a task', [taskOf('T2', 'c', isDone, 'SECRET')]],
    ['a status', [statusOf('T2', 'c', isDone, 'SECRET')]],
    ['a status that fails', [statusOf('T2', 'c', 'TASK_STATE_FAILED', 'SECRET')]],
    ['a question', [statusOf('T2', 'c', 'TASK_STATE_INPUT_REQUIRED', 'SECRET')]],
    ['an artifact', [artifact('T2', 'c', 'SECRET'), statusOf('T2', 'c', isDone)]],
    [
      'a message',
      [
        {
          message: {
            messageId: 'm',
            taskId: 'T2',
            role: 'ROLE_AGENT',
            parts: [{ text: 'SECRET' }],
          },
        },
      ],
    ],
    ['a status in another context', [statusOf('T1', 'other', isDone, 'SECRET')]],
    ['an artifact in another context', [artifact('T1', 'other', 'SECRET')]],
  ])('X45: sends %s of another task, which is ignored', async (_what, updates) => {
    const own = [artifact('T1', 'c', 'mine'), statusOf('', '', isDone)];
    const results = [taskOf('T1', 'c', works), ...updates, ...own];
    const listener = stream(...results.map((result) => ({ jsonrpc: '2.0', id: 1, result })));
    await withServer(listener, async (url) => {
      const { result, isError, progress } = await ran(a2aTool(url, about));
      expect([result, isError]).toEqual(['mine', false]);
      expect(JSON.stringify(progress)).not.toContain('SECRET');
    });
  });

  it('X45: answers a message to a task with another one, which is ignored', async () => {
    const result = taskOf('T2', 'c', isDone, 'SECRET');
    await withServer(stream({ jsonrpc: '2.0', id: 1, result }), async (url) => {
      const asked = await ran(a2aTool(url, about), { message: 'Blue.', taskId: 'T1' });
      expect(asked.isError).toBe(true);
      expect(asked.result).not.toContain('SECRET');
    });
  });

  it('answers with a status of HTTP', async () => {
    const status = async (code: number) =>
      (
        await failing(
          answering((_, response) => {
            response.writeHead(code);
            response.end();
          }),
        )
      )[0];
    expect(await status(401)).toBe('auth');
    expect(await status(429)).toBe('rateLimited');
    expect(await status(404)).toBe('server');
    expect(await status(503)).toBe('server');
    const closed = await withServer(
      () => undefined,
      (url) => Promise.resolve(url),
    );
    const [gone] = await failureOf(a2aTool(closed, about));
    expect(gone).toBe('connection');
  });

  it('never stops sending', async () => {
    const endless = (line: string) =>
      answering((_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const more = () => {
          while (response.write(line) && !response.destroyed);
          if (!response.destroyed) response.once('drain', more);
        };
        more();
      });
    const update = { statusUpdate: { taskId: '', contextId: 'c', status: { state: 2 } } };
    const event = `data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result: update })}\n\n`;
    const limits = { response: 200_000 };
    expect((await failing(endless(event), { limits }))[0]).toBe('tooLarge');
    expect((await failing(endless('data: x'), { limits }))[0]).toBe('tooLarge');
    expect((await failing(endless(': \n'), { limits }))[0]).toBe('tooLarge');
  });

  it('is silent: the run ends with its time-out', () =>
    withServer(
      answering(() => NEVER),
      async (url) => {
        const { isError, result } = await ran(a2aTool(url, { ...about, timeoutMs: 20 }));
        expect([isError, result]).toEqual([true, expect.stringMatching(/20 ms|time/u)]);
      },
    ));

  it('needs options that are right', () => {
    expect(() => a2aTool('ftp://x', about)).toThrow("'target'");
    expect(() => a2aTool({} as never, about)).toThrow("'target'");
    expect(() => a2aTool('http://x', { name: 'x' } as never)).toThrow("'description'");
    expect(() => a2aTool('http://x', { ...about, origins: ['http://x/y'] })).toThrow("'origins'");
    expect(() => a2aTool('http://x', { ...about, limits: { card: 0 } })).toThrow("'card'");
  });
});
