import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startPostgres, type TestServer } from '@millrace/postgres-server';
import { createAgent, isMillraceError, suspend, tool, toolResults } from 'millrace';
import { type CallStoreDriver, createCallStore, journal } from 'millrace/journal';
import { keepSessions } from 'millrace/sessions';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import {
  concatMap,
  defer,
  firstValueFrom,
  lastValueFrom,
  map,
  NEVER,
  of,
  race,
  ReplaySubject,
} from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { openFiles } from '../files/open-files.js';
import { openPostgres } from '../postgres/open-postgres.js';
import { openSqlite } from '../sqlite/open-sqlite.js';
import type { Store } from '../store.js';

jest.setTimeout(240_000);

let root: string;
let server: TestServer;
const stores: Store[] = [];
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'settled-'));
  server = await startPostgres();
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => closeStore(store)));
});
afterAll(async () => {
  await server.stop();
  await rm(root, { recursive: true });
});

/** Opens a store of its own for each process, all on the same data. */
const kinds: Readonly<Record<string, (place: string) => () => Store>> = {
  files: (place) => () => openFiles(join(root, place), { leaseMs: 2_000 }),
  SQLite: (place) => () => openSqlite(join(root, `${place}.db`), { leaseMs: 2_000 }),
  Postgres: (place) => () =>
    openPostgres(server.url, { schema: place, leaseMs: 2_000, pool: { max: 2 } }),
};

const place = (kind: string) => {
  const open = kinds[kind]?.(`t${randomBytes(6).toString('hex')}`);
  if (open === undefined) throw new Error(kind);
  const done: string[] = [];
  /** A process that stops before it writes a record of this name. */
  const processOf = (name: string, last?: string) => {
    const store = open();
    stores.push(store);
    const died$ = new ReplaySubject<void>(1);
    let isDead = false;
    const { driver } = store.calls;
    const dying: CallStoreDriver = {
      ...driver,
      claim$: (callId) =>
        driver.claim$(callId).pipe(
          map((claim) => ({
            append$: (batch) =>
              defer(() => {
                isDead ||= last !== undefined && batch.some((it) => it.name === last);
                if (!isDead) return claim.append$(batch);
                died$.next();
                return NEVER;
              }),
          })),
        ),
    };
    const pay = tool({ name: 'pay', description: 'Pays.', run: () => `Paid ${done.push(name)}.` });
    const ask = tool({ name: 'ask', description: 'Asks.', run: () => suspend() });
    const answer: ScriptedAnswer = ({ messages }) => {
      const results = messages.flatMap((it) => (it.role === 'tool' ? it.content : []));
      if (results.length === 0) return [toolCall('ask', {}, 'q')];
      return results.length === 1 ? [toolCall('pay', {}, 'p')] : [text('Done.')];
    };
    const model = scriptedModel(...Array<ScriptedAnswer>(9).fill(answer));
    const agent = createAgent({ name: 'a', model, tools: [ask, pay] });
    const kept = keepSessions(agent, store.sessions, { journal: journal(createCallStore(dying)) });
    return { open: () => kept.open('s'), died$, store };
  };
  return { done, processOf };
};

const outcome = (call: Promise<{ readonly reason: string } | undefined>): Promise<string> =>
  call.then(
    (reply) => reply?.reason ?? 'none',
    (error: unknown) => (isMillraceError(error) ? error.code : String(error)),
  );

describe.each(Object.keys(kinds))('T13, S6: tool calls that wait in %s', (kind) => {
  const asked = async () => {
    const at = place(kind);
    const first = await at.processOf('first').open();
    await first.call('Pay.', { callId: 'c' });
    return { ...at, results: toolResults({ q: 'Yes.' }) };
  };

  it('are settled by the first of two processes', async () => {
    const { processOf, done, results } = await asked();
    const [a, b] = [await processOf('a').open(), await processOf('b').open()];
    const ends = await Promise.all([
      outcome(a.call(results, { callId: 'a' })),
      outcome(b.call(results, { callId: 'b' })),
    ]);
    expect(ends.toSorted()).toEqual(['answer', 'conflict']);
    expect(done).toHaveLength(1);
    const c = await processOf('c').open();
    await outcome(c.resume());
    expect(await outcome(c.call(results))).toBe('invalidResume');
    expect(done).toHaveLength(1);
  });

  it.each(['a/call', 'a/open', 'a/1', 'a/1/0'])(
    'are settled once if the process of the first stops at %s',
    async (step) => {
      const { processOf, done, results } = await asked();
      const dying = processOf('a', step);
      const call$ = (await dying.open()).call$(results, { callId: 'a' });
      await firstValueFrom(race(dying.died$, call$));
      await closeStore(dying.store);
      stores.splice(stores.indexOf(dying.store), 1);
      const b = await processOf('b').open();
      const second = await outcome(b.call(results, { callId: 'b' }));
      const c = await processOf('c').open();
      const resumed = await outcome(c.resume());
      const third = await outcome(c.call(results, { callId: 'd' }));
      const ends = { second, resumed, third };
      expect({ step, ends, done: done.length }).toMatchObject({ step, done: 1 });
      expect(third).toMatch(/^(?:invalidResume|conflict)$/u);
    },
  );

  it('are free again if the call that has claimed them is deleted', async () => {
    const { processOf, done, results } = await asked();
    const dying = processOf('a', 'a/1');
    const call$ = (await dying.open()).call$(results, { callId: 'a' });
    await firstValueFrom(race(dying.died$, call$));
    await closeStore(dying.store);
    stores.splice(stores.indexOf(dying.store), 1);
    const { store, open } = processOf('b');
    await lastValueFrom(store.calls.driver.remove$('a').pipe(concatMap(() => of(0))), {
      defaultValue: 0,
    });
    const b = await open();
    await outcome(b.resume());
    expect(await outcome(b.call(results, { callId: 'b' }))).toBe('answer');
    expect(done).toHaveLength(1);
  });
});
