import { isRecord } from 'millrace/values';
import { Subject } from 'rxjs';
import { type Answer, answer, type Message, web } from './web.test-support.js';

const paramsOf = (message: Message): Readonly<Record<string, unknown>> =>
  message['params'] as Readonly<Record<string, unknown>>;

export interface Shop {
  readonly url: string;
  /** The methods that were called for tasks. */
  readonly calls: string[];
  /** Lets the task be as told from the next poll on. */
  readonly now: { state: Readonly<Record<string, unknown>>; result: unknown };
  readonly inputs: unknown[];
  readonly polled$: Subject<void>;
  readonly cancelled$: Subject<void>;
  /** Other answers to methods. */
  readonly other: Record<string, Answer>;
}

export const done = { content: [{ type: 'text', text: 'baked' }] };
const tool = { name: 'bake', description: 'Bakes.', inputSchema: { type: 'object' } };

/** A version of the protocol: its handshake, its fields of a task and of results, and its answer to a tool call. */
interface Version {
  readonly hello: Readonly<Record<string, (message: Message) => object>>;
  readonly task: object;
  readonly result: object;
  readonly list: object;
  readonly called: (task: object, params: Readonly<Record<string, unknown>>) => object;
}

const old: Version = {
  hello: {
    initialize: () => ({
      protocolVersion: '2025-11-25',
      capabilities: { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } },
      serverInfo: { name: 'web', version: '1' },
    }),
  },
  task: { ttl: null, pollInterval: 100 },
  result: {},
  list: {},
  called: (task, params) => (params['task'] === undefined ? done : { task }),
};

/** The server decides that a tool call is a task. */
const modern: Version = {
  hello: {
    'server/discover': () => ({
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
      ttlMs: 0,
      cacheScope: 'private',
    }),
  },
  task: { ttlMs: null, pollIntervalMs: 100 },
  result: { resultType: 'complete' },
  list: { ttlMs: 0, cacheScope: 'private' },
  called: (task) => ({ ...task, resultType: 'task' }),
};

/** A server whose tool runs as a task. */
const shopOf = async (
  { hello, task: ofTask, result, list, called }: Version,
  listed: object,
): Promise<Shop> => {
  const calls: string[] = [];
  const inputs: unknown[] = [];
  const now: Shop['now'] = { state: { status: 'working' }, result: done };
  const [polled$, cancelled$] = [new Subject<void>(), new Subject<void>()];
  const other: Record<string, Answer> = {};
  const task = (): object => ({
    taskId: 't1',
    createdAt: '2026-01-01T00:00:00Z',
    lastUpdatedAt: '2026-01-01T00:00:00Z',
    ...ofTask,
    ...now.state,
  });
  const answers: Readonly<Record<string, (message: Message) => object>> = {
    'tools/call': (message) => {
      const { _meta: meta } = paramsOf(message);
      inputs.push(isRecord(meta) && meta['io.modelcontextprotocol/clientCapabilities']);
      return called(task(), paramsOf(message));
    },
    'tasks/get': () => ({ ...result, ...task() }),
    'tasks/result': () => now.result as object,
    'tasks/update': (message) => {
      inputs.push(paramsOf(message)['inputResponses']);
      now.state = { status: 'completed', result: done };
      return result;
    },
    'tasks/cancel': () => {
      now.state = { status: 'cancelled' };
      return { ...result, ...task() };
    },
  };
  const url = await web({
    ...Object.fromEntries(
      Object.entries(hello).map(([method, of]): [string, Answer] => [
        method,
        (message, _request, response) => answer(response, message, of(message)),
      ]),
    ),
    'tools/list': (message, _request, response) =>
      answer(response, message, { ...result, ...list, tools: [{ ...tool, ...listed }] }),
    ...Object.fromEntries(
      Object.entries(answers).map(([method, of]): [string, Answer] => [
        method,
        (message, request, response) => {
          calls.push(method);
          const special = other[method];
          if (special === undefined) answer(response, message, of(message));
          else special(message, request, response);
          if (method === 'tasks/get') polled$.next();
          if (method === 'tasks/cancel') cancelled$.next();
        },
      ]),
    ),
  });
  return { url, calls, inputs, now, polled$, cancelled$, other };
};

/** Of the version of 2025: the tool says whether it runs as a task. */
export const shop = (taskSupport = 'required'): Promise<Shop> =>
  shopOf(old, { execution: { taskSupport } });
export const modernShop = (): Promise<Shop> => shopOf(modern, {});
