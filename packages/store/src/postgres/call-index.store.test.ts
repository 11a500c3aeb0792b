import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { CallQuery } from 'millrace/journal';
import { startPostgres, type TestServer } from '@millrace/postgres-server';
import pg from 'pg';
import { asyncScheduler, concatMap, lastValueFrom, take, toArray } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { listStatement } from '../sql/call-statements.js';
import type { PageEnd } from '../sql/call-table.js';
import { postgresCallTable } from '../sql/sql-calls.js';
import { tableCalls } from '../sql/table-calls.js';
import type { DatabaseStore } from '../store.js';
import { openPostgres } from './open-postgres.js';
import { postgresSql } from './postgres-sql.js';

jest.setTimeout(40_000);

let server: TestServer;
let admin: pg.Client;
let store: DatabaseStore;
beforeAll(async () => {
  server = await startPostgres();
  admin = new pg.Client(server.url);
  await admin.connect();
  store = openPostgres(server.url, { schema: 'many' });
  await listed({});
  // The first of the list was written now, and each one a second before. Every ten thousandth is unfinished.
  await admin.query(`insert into many.calls (key, id, last_position, session, has_ended, created_at, updated_at)
    select 'i-c' || at, 'c' || at, 2, 's' || at % 1000, at % 10000 <> 0, now() - at * interval '1 s', now() - at * interval '1 s'
    from generate_series(1, 100000) as at`);
  await admin.query(`insert into many.records (call, position, kind, name, seq, text)
    select key, position, 'step', 'x', 0, '{}' from many.calls, generate_series(1, 2) as position`);
  await admin.query('analyze many.calls, many.records');
}, 240_000);
afterAll(async () => {
  await closeStore(store);
  await admin.end();
  await server.stop();
});

const listed = async (query: CallQuery, pages = 1): Promise<readonly string[]> =>
  (await lastValueFrom(store.calls.driver.list$(query).pipe(take(pages), toArray())))
    .flat()
    .map(({ callId }) => callId);

interface Plan {
  readonly 'Node Type': string;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly Plan[];
}

const nodesIn = (plan: Plan): readonly string[] => [
  plan['Node Type'],
  ...(plan.Plans ?? []).flatMap(nodesIn),
];

const planOf = async (query: CallQuery, after?: PageEnd): Promise<Plan> => {
  const [statement, values] = listStatement('many', query, after);
  const { rows } = await admin.query<{ readonly 'QUERY PLAN': readonly { readonly Plan: Plan }[] }>(
    `explain (analyze, buffers, format json) ${statement}`,
    [...values],
  );
  const plan = rows[0]?.['QUERY PLAN'][0]?.Plan;
  if (plan === undefined) throw new Error('There is no plan.');
  return plan;
};

const longAgo = (): number => Date.now() - 50_000_500;

describe('S6: of 100,000 calls on Postgres', () => {
  it('lists what a query matches, in order', async () => {
    expect((await listed({})).slice(0, 3)).toEqual(['c1', 'c2', 'c3']);
    expect(await listed({ isUnfinished: true }, 2)).toEqual(
      Array.from({ length: 10 }, (_, at) => `c${(at + 1) * 10_000}`),
    );
    const ofSession = await listed({ sessionId: 's7' }, 100);
    expect(ofSession).toHaveLength(100);
    expect(ofSession.slice(0, 2)).toEqual(['c99007', 'c98007']);
    expect(await listed({ sessionId: 's0', isUnfinished: true }, 9)).toHaveLength(10);
    const [first, ...rest] = await listed({ writtenUntil: longAgo() }, 3);
    expect(Number(first?.slice(1))).toBeGreaterThan(49_990);
    expect(rest).toHaveLength(149);
  });

  it.each<[string, () => CallQuery, PageEnd | undefined]>([
    ['the newest', () => ({}), undefined],
    ['the page after a call', () => ({}), [new Date(longAgo()).toISOString(), 'i-c5']],
    ['the unfinished ones', () => ({ isUnfinished: true }), undefined],
    ['the old ones', () => ({ writtenUntil: longAgo() }), undefined],
    ['the old unfinished ones', () => ({ isUnfinished: true, writtenUntil: longAgo() }), undefined],
    ['those of a session', () => ({ sessionId: 's7' }), undefined],
    ['those of a session, after a call', () => ({ sessionId: 's7' }), ['50000', 'i-c5']],
  ])('reads %s by an index', async (_name, query, after) => {
    const plan = await planOf(query(), after);
    expect(nodesIn(plan)).not.toContain('Seq Scan');
    // A page of 50 calls has 100 records, each of them some levels below the root of an index.
    expect(plan['Shared Hit Blocks'] + plan['Shared Read Blocks']).toBeLessThan(1_000);
  });

  it('removes thousands in some statements, and skips those that are open', async () => {
    const options = { schema: 'many', scheduler: asyncScheduler, retryMs: 0 };
    const sql = postgresSql({ connectionString: server.url, max: 1 }, options);
    const opened = await sql.open();
    let statements = 0;
    const driver = tableCalls(
      () =>
        Promise.resolve(
          postgresCallTable({
            ...opened,
            transaction: (work) =>
              opened.transaction((query) =>
                work((...statement) => {
                  statements += 1;
                  return query(...statement);
                }),
              ),
            query: (...statement) => {
              statements += 1;
              return opened.query(...statement);
            },
          }),
        ),
      { leaseMs: 10_000, scheduler: asyncScheduler },
    );
    const ids = Array.from({ length: 2_000 }, (_, at) => `c${at + 1}`);
    const removed = await lastValueFrom(
      store.calls.driver.claim$('c5').pipe(
        concatMap(() => driver.removeAll$([...ids, 'unknown']).pipe(toArray())),
        take(1),
      ),
    );
    await sql.close();
    const left = removed.flat();
    expect(left).toHaveLength(1_999 + 1);
    expect(left).toContainEqual({ callId: 'c7', sessionId: 's7' });
    expect(left).toContainEqual({ callId: 'unknown' });
    expect(left.map(({ callId }) => callId)).not.toContain('c5');
    expect(statements).toBeLessThan(10);
    const { rows } = await admin.query('select count(*) from many.records');
    expect(rows).toEqual([{ count: String(2 * (100_000 - 1_999)) }]);
  });
});
