import { setTimeout as sleep } from 'node:timers/promises';
import { createAgent, isMillraceError, tool } from 'millrace';
import { journal } from 'millrace/journal';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import type { TestServer } from '@millrace/postgres-server';
import pg from 'pg';
import { closeStore } from '../close-store.test-support.js';
import type { DatabaseStore } from '../store.js';
import { type FaultProxy, startFaultProxy } from './fault-proxy.test-support.js';

/** What a fault may use. */
interface Reach {
  readonly server: TestServer;
  readonly proxy: FaultProxy;
  /** Runs statements on a connection of its own, one after the other, and closes it. */
  readonly ask: (...statements: readonly string[]) => Promise<void>;
}

export interface Fault {
  readonly name: string;
  /** Happens before the store opens. */
  readonly before?: (reach: Reach) => Promise<void>;
  /** Happens while the calls run. */
  readonly during?: (reach: Reach) => Promise<void>;
  /** Restores the server. */
  readonly after?: (reach: Reach) => Promise<void>;
}

const setDefault =
  (name: string, value: string): Fault['before'] & object =>
  ({ ask }) =>
    ask(`alter system set ${name} = ${value}`, 'select pg_reload_conf()');

const killAll = `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname is not null`;

const restart =
  (signal: 'SIGINT' | 'SIGQUIT'): Fault['during'] & object =>
  async ({ server }) => {
    if (server.restart === undefined) throw new Error('This server cannot be restarted.');
    await server.restart(signal, 1_000);
  };

/** Statements of the store, by a part of their texts, whose answers or whose second half is lost. */
const cutEach =
  (cut: 'statement' | 'answer'): Fault['during'] & object =>
  async ({ proxy }) => {
    for (const part of ['unnest($4::text[]', 'as call (key, id', 'set expires_at', 'commit\0']) {
      proxy.cutNext(cut, part, 3);
      await sleep(250);
    }
  };

export const faults: readonly Fault[] = [
  { name: 'no fault' },
  {
    name: 'serializable is the default',
    before: setDefault('default_transaction_isolation', `'serializable'`),
    after: setDefault('default_transaction_isolation', `'read committed'`),
  },
  { name: 'restart', during: restart('SIGINT') },
  { name: 'crash and recovery', during: restart('SIGQUIT') },
  {
    name: 'every connection is killed, 3 times',
    during: async ({ ask }) => {
      for (let left = 3; left > 0; left -= 1) {
        await ask(killAll);
        await sleep(200);
      }
    },
  },
  {
    name: 'failover: the server is read-only for 2 s',
    during: async (reach) => {
      await setDefault('default_transaction_read_only', 'on')(reach);
      await sleep(2_000);
      await reach.ask(
        'set default_transaction_read_only = off',
        'alter system set default_transaction_read_only = off',
        'select pg_reload_conf()',
      );
    },
  },
  {
    name: 'too many connections for 2 s',
    during: async ({ ask, server }) => {
      await ask(killAll);
      const others: pg.Client[] = [];
      try {
        for (;;) {
          const client = new pg.Client(server.url);
          client.on('error', () => undefined);
          await client.connect();
          others.push(client);
        }
      } catch {
        await sleep(2_000);
      }
      await Promise.allSettled(others.map((client) => client.end()));
    },
  },
  {
    name: 'network cut for 2 s',
    during: async ({ proxy }) => {
      proxy.refuse(2_000);
      await sleep(2_000);
    },
  },
  { name: 'cut in the middle of statements', during: cutEach('statement') },
  { name: 'cut in the middle of answers', during: cutEach('answer') },
  {
    name: 'slow server: 100 ms an answer',
    before: ({ proxy }) => {
      proxy.slow(100);
      return Promise.resolve();
    },
    after: ({ proxy }) => {
      proxy.slow(0);
      return Promise.resolve();
    },
  },
];

export interface FaultResult {
  readonly fault: string;
  readonly calls: number;
  readonly failed: number;
  /** Of as many calls that begin when the server is back. */
  readonly failedAfter: number;
  readonly effects: number;
  readonly expected: number;
  readonly twice: number;
  readonly ms: number;
  /** The reasons of failed calls. */
  readonly errors: readonly string[];
}

const tools = 5;

/** Makes calls with an effect in each turn while a fault happens, and calls after it. */
export const runFault = async (
  fault: Fault,
  server: TestServer,
  open: (url: string) => DatabaseStore,
  calls = 20,
): Promise<FaultResult> => {
  const proxy = await startFaultProxy(server.url);
  const ask: Reach['ask'] = async (...statements) => {
    const client = new pg.Client(server.url);
    client.on('error', () => undefined);
    await client.connect();
    try {
      for (const statement of statements) await client.query(statement);
    } finally {
      await client.end();
    }
  };
  const reach = { server, proxy, ask };
  await fault.before?.(reach);
  const store = open(proxy.url);
  const durable = journal(store.calls);
  const effects: string[] = [];
  const errors: string[] = [];
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    run: async (_input, { idempotencyKey }) => {
      effects.push(idempotencyKey);
      await sleep(100);
      return 'Paid.';
    },
  });
  const call = async (callId: string): Promise<boolean> => {
    const model = scriptedModel(...Array.from({ length: tools }, () => [toolCall('pay')]), [
      text('Done.'),
    ]);
    try {
      await createAgent({ model, tools: [pay], use: [durable] }).call('Pay.', { callId });
      return true;
    } catch (error) {
      errors.push(isMillraceError(error) ? `${error.code}: ${error.message}` : String(error));
      return false;
    }
  };
  const some = async (name: string, over: Promise<unknown>): Promise<number> => {
    const ended = Array.from({ length: calls }, (_, at) => call(`${name}${at}`));
    await over;
    return (await Promise.all(ended)).filter((isDone) => !isDone).length;
  };
  const since = performance.now();
  const failed = await some(
    'during',
    sleep(250).then(() => fault.during?.(reach)),
  );
  const made = effects.length;
  const twice = made - new Set(effects).size;
  const ms = Math.round(performance.now() - since);
  await fault.after?.(reach);
  const failedAfter = await some('after', Promise.resolve());
  await closeStore(store);
  await proxy.close();
  const expected = calls * tools;
  return {
    fault: fault.name,
    calls,
    failed,
    failedAfter,
    effects: made,
    expected,
    twice,
    ms,
    errors,
  };
};
