import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type AgentEvent, isEvent, toolResults } from 'millrace';
import { attach$ } from 'millrace/journal';
import { isRecord } from 'millrace/values';
import { openFiles } from '@millrace/store';
import { type Waking, wake$ } from '@millrace/time';
import { filter, firstValueFrom, lastValueFrom, Subject, toArray } from 'rxjs';
import { type RestateServer, startRestate } from './restate-server.test-support.js';

/**
 * A node. Its model calls the tools that the input names, one turn for each line, and then answers with all texts of the user.
 * Tools and requests visit the world before and after their work.
 */
const script = `
import { createServer } from 'node:http2';
import { createAgent, requireApproval, textOf, tool } from 'millrace';
import { finish, text, toolCall } from 'millrace/testing';
import { restateAgents, awaitDecision } from '@millrace/restate';
import { openFiles } from '@millrace/store';
import { sleepLayer } from '@millrace/time';
import { createEndpointHandler } from '@restatedev/restate-sdk';
import { concatMap, from } from 'rxjs';

const [, directory, world] = process.argv;
const visit = async (...path) => {
  const response = await fetch([world, ...path.map(encodeURIComponent)].join('/'), { method: 'POST' });
  await response.text();
};
const acts = (name, policy = {}) => ({
  ...tool({
    name,
    description: name,
    run: async (_, { callId, idempotencyKey }) => {
      await visit(callId, name + ' starts');
      await visit(callId, name, idempotencyKey);
      await visit(callId, name + ' ends');
      return name + ' is done.';
    },
  }),
  ...policy,
});
const isFrom = (wanted) => ({ role }) => role === wanted;
const model = {
  name: 'lines',
  stream$: ({ messages }, { callId }) => {
    const turn = messages.filter(isFrom('assistant')).length;
    const texts = messages.filter(isFrom('user')).map(textOf);
    const line = texts[0].split('\\n')[turn];
    const answer = line === undefined
      ? [text(texts.slice(1).concat('Done.').join(' '))]
      : line.split(' ').map((name) => toolCall(name, name === 'sleep' ? { seconds: 1 } : {}));
    return from(visit(callId, 'turn ' + (turn + 1))).pipe(concatMap(() => [...answer, finish()]));
  },
};
const tools = [
  acts('charge', { idempotent: true }),
  acts('mail'),
  requireApproval(acts('refund'), awaitDecision),
];
const store = openFiles(directory);
const use = [sleepLayer(store.calls, { holdMs: 0 })];
const agent = createAgent({ name: 'worker', model, tools, use });
const { services, drain } = restateAgents([agent], {
  store,
  onUncertain: 'report',
  objectOptions: { retryPolicy: { initialInterval: 20, maxInterval: 20 } },
});
process.once('SIGTERM', () => drain().then(() => process.exit(0)));
const server = createServer(createEndpointHandler({ services, logger: () => undefined }));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

const portOf = (server: Server): number => {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
};

const listening = async (server: Server): Promise<string> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${portOf(server)}`;
};

interface Visit {
  readonly callId: string;
  readonly point: string;
  readonly key: string | undefined;
}

let restate: RestateServer;
let directory: string;
let node: ChildProcess | undefined;
let nodePort = 0;
let worldUrl: string;
const visits: Visit[] = [];
const visit$ = new Subject<Visit>();
/** Resolves when a visitor may leave. */
let mayLeave: (visit: Visit) => Promise<unknown> | undefined = () => undefined;

const world = createServer((request, response) => {
  const [callId = '', point = '', key] = (request.url ?? '')
    .slice(1)
    .split('/')
    .map(decodeURIComponent);
  const visit = { callId, point, key };
  visits.push(visit);
  void Promise.resolve(mayLeave(visit)).then(() => response.end());
  visit$.next(visit);
});

/** What Restate connects to: the node of the moment, or nothing. */
const proxy = createTcpServer((socket) => {
  const onward = connect(nodePort, '127.0.0.1');
  socket.pipe(onward).pipe(socket);
  socket.on('error', () => onward.destroy());
  onward.on('error', () => socket.destroy());
  onward.on('close', () => socket.destroy());
});

const startNode = async (): Promise<void> => {
  const parameters = ['--input-type=module', '-e', script, join(directory, 'store'), worldUrl];
  const child = spawn(process.execPath, parameters, {
    cwd: join(import.meta.dirname, '..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  node = child;
  const exited = once(child, 'exit').then(() =>
    Promise.reject(new Error('The node did not start.')),
  );
  const [line]: unknown[] = await Promise.race([
    once(createInterface(child.stdout), 'line'),
    exited,
  ]);
  exited.catch(() => undefined);
  nodePort = Number(line);
};

const endNode = async (signal: 'SIGKILL' | 'SIGTERM'): Promise<void> => {
  if (node === undefined) return;
  const exited = once(node, 'exit');
  node.kill(signal);
  await exited;
  node = undefined;
};

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-restate-'));
  worldUrl = await listening(world);
  const [started] = await Promise.all([startRestate(), startNode()]);
  restate = started;
  await restate.register(await listening(proxy));
});
afterAll(async () => {
  await endNode('SIGKILL');
  await restate.stop();
  proxy.close();
  world.closeAllConnections();
  world.close();
  await rm(directory, { recursive: true });
});

const begin = (callId: string, input: string): Promise<string> =>
  restate.send(`/worker/${encodeURIComponent(callId)}/call`, { input, callId });

const textOfReply = async (invocationId: string): Promise<unknown> => {
  const { body } = await restate.attach(invocationId);
  const reply = isRecord(body) ? body['reply'] : undefined;
  return isRecord(reply) ? reply['text'] : body;
};

/** All events of a call that has ended. */
const eventsOf = (callId: string): Promise<readonly AgentEvent[]> =>
  lastValueFrom(attach$(openFiles(join(directory, 'store')).calls, callId).pipe(toArray()));

const keysOf = (callId: string, point: string): readonly unknown[] =>
  visits.filter((it) => it.callId === callId && it.point === point).map(({ key }) => key);

/** Tool calls of unknown outcome, without those that run again. */
const reportedOf = async (callId: string): Promise<readonly string[]> =>
  (await eventsOf(callId)).flatMap((event) =>
    isEvent(event, 'uncertain') && event.then === 'report' ? [event.toolCall.name] : [],
  );

/** Lets nobody leave a point, and resolves when someone is there. */
const heldAt = async (callId: string, point: string): Promise<void> => {
  const isThere = (visit: Visit): boolean => visit.callId === callId && visit.point === point;
  mayLeave = (visit) => (isThere(visit) ? new Promise(() => undefined) : undefined);
  await firstValueFrom(visit$.pipe(filter(isThere)));
};

const killNode = async (): Promise<void> => {
  await endNode('SIGKILL');
  mayLeave = () => undefined;
};

it.each([
  'turn 1',
  'charge starts',
  'charge',
  'charge ends',
  'mail starts',
  'mail',
  'mail ends',
  'turn 2',
])(
  'a node that is killed at %j: the next one completes the call, and no effect happens twice',
  async (point) => {
    const callId = `killed at ${point}`;
    const held = heldAt(callId, point);
    const call = await begin(callId, 'charge mail');
    await held;
    await killNode();
    await startNode();
    expect(await textOfReply(call)).toBe('Done.');
    expect(new Set(keysOf(callId, 'charge')).size).toBe(1);
    const mails = keysOf(callId, 'mail').length;
    const reported = await reportedOf(callId);
    expect(mails === 1 || (mails === 0 && reported.length === 1)).toBe(true);
    if (point.startsWith('turn')) expect(reported).toEqual([]);
    if (point.startsWith('mail')) expect(reported).toEqual(['mail']);
  },
);

it.each(['turn 2', 'charge starts', 'charge', 'charge ends'])(
  'S6: a sleep is continued once, if no node runs when it ends, and the next one and the process that woke it end at %j',
  async (point) => {
    const callId = `sleeps until ${point}`;
    const call = await begin(callId, 'sleep\ncharge');
    expect(await restate.attach(call)).toMatchObject({ body: { reason: 'suspended' } });
    await killNode();
    const { calls } = openFiles(join(directory, 'store'));
    const bring = ({ sessionId, nextId, results }: Waking) =>
      restate.call(`/worker/${encodeURIComponent(sessionId)}/call`, {
        input: toolResults(results),
        callId: nextId,
      });
    const woken$ = wake$(calls, bring, { pollMs: 100 }).pipe(
      filter((notice) => notice.type === 'woken'),
    );
    const held = heldAt(`${callId}~woken1`, point);
    const first = woken$.subscribe();
    await startNode();
    await held;
    first.unsubscribe();
    await killNode();
    const woken = firstValueFrom(woken$);
    await startNode();
    expect(await woken).toMatchObject({
      sleep: { callId, agent: 'worker' },
      value: { status: 200, body: { callId: `${callId}~woken1`, reply: { text: 'Done.' } } },
    });
    expect(new Set(keysOf(`${callId}~woken1`, 'charge')).size).toBe(1);
    expect(keysOf(callId, 'charge')).toEqual([]);
  },
);

it('steering before a node is killed reaches the call, each message once', async () => {
  const callId = 'steered';
  const steer = (input: string) => restate.call(`/worker/${callId}/steer`, { callId, input });
  const first = heldAt(callId, 'charge starts');
  const call = await begin(callId, 'charge\ncharge');
  await first;
  expect(await steer('One.')).toMatchObject({ body: { status: 'sent' } });
  await killNode();
  const second = heldAt(callId, 'turn 2');
  await startNode();
  // The request of the second turn has the first message.
  await second;
  expect(await steer('Two.')).toMatchObject({ body: { status: 'sent' } });
  await killNode();
  await startNode();
  expect(await textOfReply(call)).toBe('One. Two. Done.');
});

it('a decision that is made while no node runs reaches the call', async () => {
  const callId = 'decided';
  const call = await begin(callId, 'refund');
  const store = openFiles(join(directory, 'store'));
  const { toolCall } = await firstValueFrom(
    attach$(store.calls, callId, { waitMs: 30_000 }).pipe(
      filter((event) => isEvent(event, 'approvalRequested')),
    ),
  );
  await killNode();
  const decision = { callId, toolCallId: toolCall.id, verdict: true };
  await restate.send(`/worker/${callId}/decide`, decision);
  await startNode();
  expect(await textOfReply(call)).toBe('Done.');
  expect(keysOf(callId, 'refund').length).toBe(1);
});

it('an interrupt before a node is killed ends the call in the next one', async () => {
  const callId = 'interrupted';
  const held = heldAt(callId, 'charge');
  const call = await begin(callId, 'charge\ncharge\ncharge');
  await held;
  await killNode();
  await restate.send(`/worker/${callId}/interrupt`, { callId, message: 'Enough.' });
  mayLeave = (visit) => (visit.point === 'charge' ? new Promise(() => undefined) : undefined);
  await startNode();
  expect(await textOfReply(call)).toBe('Enough.');
});

it('a node that is drained finishes its step, and the next one continues', async () => {
  const callId = 'drained';
  let leave = (): void => undefined;
  const there = firstValueFrom(
    visit$.pipe(filter((it) => it.callId === callId && it.point === 'mail')),
  );
  mayLeave = (visit) =>
    visit.callId === callId && visit.point === 'mail'
      ? new Promise<void>((resolve) => (leave = resolve))
      : undefined;
  const call = await begin(callId, 'mail');
  await there;
  const ended = endNode('SIGTERM');
  const other = await begin('after', 'mail');
  leave();
  await ended;
  await startNode();
  expect(await textOfReply(call)).toBe('Done.');
  expect(keysOf(callId, 'mail').length).toBe(1);
  expect(await reportedOf(callId)).toEqual([]);
  expect(await textOfReply(other)).toBe('Done.');
});
