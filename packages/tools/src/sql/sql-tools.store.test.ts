import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PGlite } from '@electric-sql/pglite';
import { createAgent, type Tool } from 'millrace';
import { lentToolContext, scriptedModel, text, toolCall, toolContract } from 'millrace/testing';
import { startPostgres, type TestServer } from '@millrace/postgres-server';
import pg from 'pg';
import { VirtualTimeScheduler } from 'rxjs';
import { runTool } from '../run-tool.test-support.js';
import { withoutSemicolon } from './read-rows.js';
import { sqlTools, type SqlToolsOptions } from './sql-tools.js';

const tables = `
create table rivers (id serial primary key, name text not null);
create table mills (id int primary key, name text not null, wheels int, river_id int references rivers, "Odd name" text);
comment on table mills is 'Water mills.';
comment on column mills.wheels is 'The number of wheels.';
insert into rivers (name) values ('Lea'), ('Itchen');
insert into mills values (1, 'House', 3, 1, null), (2, 'City', 1, 2, E'a|b\\nc'), (3, 'Clock', null, 1, '');
create view big_mills as select * from mills where wheels > 2;
create function add_river() returns int language sql volatile as $$ insert into rivers (name) values ('x') returning id $$;
create function drop_mills() returns void language plpgsql as $$ begin execute 'commit'; execute 'drop table mills'; end $$;
create procedure committing() language plpgsql as $$ begin commit; drop table mills; end $$;`;

let server: TestServer;
let pglite: PGlite;
let admin: pg.Client;
let reader: string;
const pools: pg.Pool[] = [];

beforeAll(async () => {
  [server, pglite] = await Promise.all([startPostgres(), PGlite.create()]);
  admin = new pg.Client(server.url);
  await admin.connect();
  await admin.query(tables);
  await admin.query(`create extension if not exists dblink; create role reader login password 'secret';
    grant select on mills, rivers, big_mills to reader; create table hidden (x int)`);
  reader = server.url.replace(/\/\/[^@]*@/u, '//reader:secret@');
});
afterAll(async () => {
  await Promise.all([admin, pglite, ...pools].map((it) => ('end' in it ? it.end() : it.close())));
  await server.stop();
});

const poolOf = (url = server.url): pg.Pool => {
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  pool.on('error', () => undefined);
  pools.push(pool);
  return pool;
};
const named = (tools: readonly Tool[], name: string): Tool => {
  const found = tools.find((tool) => tool.name === name);
  if (found === undefined) throw new Error(`There is no ${name}.`);
  return found;
};
const shared: { pool?: pg.Pool } = {};
const query = (sql: string, options: Partial<SqlToolsOptions> = {}) =>
  runTool(named(sqlTools({ postgres: (shared.pool ??= poolOf()), ...options }), 'sql_query'), {
    sql,
  });
const messageOf = async (sql: string, options: Partial<SqlToolsOptions> = {}): Promise<string> => {
  try {
    return `no error: ${(await query(sql, options)).text}`;
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
};
/** What no query may change. */
const state = async (): Promise<unknown> => {
  const { rows } =
    await admin.query(`select (select count(*) from mills) as mills, (select count(*) from rivers) as rivers,
    (select last_value from rivers_id_seq) as sequence, (select count(*) from pg_class) as classes,
    (select count(*) from pg_largeobject_metadata) as objects,
    (select count(*) from pg_locks where locktype = 'advisory') as locks`);
  return rows[0];
};

describe.each([
  ['Postgres', () => poolOf()],
  [
    'PGlite',
    async () => {
      await pglite.exec(tables);
      return pglite;
    },
  ],
] as const)('sqlTools on %s', (_, open) => {
  let tools: readonly Tool[];
  let postgres: SqlToolsOptions['postgres'];
  beforeAll(async () => {
    postgres = await open();
    tools = sqlTools({ postgres });
  });
  const run = (name: string, input: unknown = {}) => runTool(named(tools, name), input);

  it('follows the contract of tools', async () => {
    const contract = [
      ...toolContract(() => named(tools, 'sql_query'), {
        valid: [{ sql: 'select 1' }],
        invalid: [{}, { sql: '' }, { sql: 5 }],
      }),
      ...toolContract(() => named(tools, 'sql_schema'), {
        valid: [{}, { table: 'mill' }],
        invalid: [{ table: '' }],
      }),
    ];
    for (const check of contract) await check.run();
  });

  it('describes the tables, with columns, keys and comments', async () => {
    const { text, output } = await run('sql_schema', { table: 'MILL' });
    expect(text).toBe(
      `view big_mills\n  id integer\n  name text\n  wheels integer\n  river_id integer\n  "Odd name" text\n
table mills -- Water mills.
  id integer not null
  name text not null
  wheels integer -- The number of wheels.
  river_id integer
  "Odd name" text
  PRIMARY KEY (id)
  FOREIGN KEY (river_id) REFERENCES rivers(id)`,
    );
    expect(output.details).toMatchObject({ isComplete: true, tables: [{ name: 'big_mills' }, {}] });
    expect((await run('sql_schema', { table: 'nothing' })).text).toBe('(No tables.)');
  });

  it('names the tables that do not fit', async () => {
    const [schema] = sqlTools({ postgres, maxLength: 150, schemas: ['public'] });
    const { text } = await runTool(schema as Tool, {});
    expect(text).toMatch(
      /^view big_mills[^]*\n\n\[More tables; filter by a part of their names: .*mills, rivers\]$/u,
    );
  });

  it('returns rows', async () => {
    const { text, output } = await run('sql_query', { sql: 'select * from mills order by id;\n' });
    expect(text).toBe(
      'id | name | wheels | river_id | Odd name\n1 | House | 3 | 1 | NULL\n2 | City | 1 | 2 | a\\|b\\nc\n3 | Clock | NULL | 1 | \n[3 rows.]',
    );
    expect(output.details).toMatchObject({
      columns: ['id', 'name', 'wheels', 'river_id', 'Odd name'],
      rows: [['1', 'House', '3', '1', null], ['2', 'City', '1', '2', 'a|b\nc'], {}],
      isComplete: true,
    });
  });

  it.each([
    ['select 1 as a, 2 as a', 'a | a\n1 | 2\n[1 row.]'],
    ['select 1 where false', '(No rows.)'],
    ['values (1, true), (2, null)', 'column1 | column2\n1 | true\n2 | NULL\n[2 rows.]'],
    ['with m as (select * from mills) select count(*) from m -- all', 'count\n3\n[1 row.]'],
    ['select q, millrace from (values (1, 2)) as t (q, millrace)', 'q | millrace\n1 | 2\n[1 row.]'],
    [
      "select date '2026-01-02', 1.50::numeric, array[1, null], '{\"a\": 1}'::jsonb as j",
      'date | numeric | array | j\n2026-01-02 | 1.50 | [1,null] | {"a": 1}\n[1 row.]',
    ],
    ["select 'Ünï 😀' as \"key\", '\"' as value", 'key | value\nÜnï 😀 | "\n[1 row.]'],
  ])('%s', async (sql, expected) => {
    expect((await run('sql_query', { sql })).text).toBe(expected);
  });

  it('shows no more rows and characters than allowed', async () => {
    const few = named(sqlTools({ postgres, maxRows: 3, maxCell: 10, maxLength: 100 }), 'sql_query');
    const of = async (sql: string) => (await runTool(few, { sql })).text;
    expect(await of('select * from generate_series(1, 50000) as n')).toMatch(
      /^n\n1\n2\n3\n\[Only the first 3 rows\./u,
    );
    expect(await of('select * from generate_series(1, 3) as n')).toMatch(/\[3 rows\.\]$/u);
    expect(await of("select repeat('x', 10) as t")).toBe('t\nxxxxxxxxxx\n[1 row.]');
    expect(await of("select repeat('x', 100000) as t")).toBe('t\nxxxxxxxxxx…\n[1 row.]');
    const names = Array.from({ length: 50 }, (_, n) => `${n} as c${n}`).join();
    expect((await of(`select ${names}`)).split('\n')[0]).toHaveLength(100);
    const wide = Array.from({ length: 8 }, () => "'1234567890'").join();
    expect(await of(`values (${wide}), (${wide})`)).toMatch(/\[Only the first 0 rows\./u);
  });

  it.each([
    [
      'select wheel from mills',
      'column "wheel" does not exist (line 1, at \'wheel from mills\'). Perhaps you meant to reference the column "mills.wheels". mills has id, name, wheels, river_id, Odd name. Read the columns with sql_schema.',
    ],
    [
      'select *\nfrom mill',
      'relation "mill" does not exist (line 2, at \'mill\'). There is: big_mills, mills. Read the tables with sql_schema.',
    ],
    ['select name, count(*) from mills', 'Add the column to GROUP BY'],
    ["select * from mills where id = 'x'", 'Cast the value'],
    ['select nothing(1)', 'function nothing(integer) does not exist'],
    [
      'selec 1',
      'syntax error at or near "selec" (line 1, at \'selec 1\'). Send one SELECT statement',
    ],
    ['select', '(No rows.)'],
    ['-- nothing', 'syntax error at end of input'],
  ])('explains the error of %j', async (sql, message) => {
    const shown = await run('sql_query', { sql }).then(
      ({ text }) => text.replace('\n[1 row.]', '').trim() || '(No rows.)',
      (error: Error) => error.message,
    );
    expect(shown).toContain(message);
  });

  it.each([
    'drop table mills',
    "insert into rivers (name) values ('x')",
    'with d as (delete from mills returning *) select * from d',
    'select add_river()',
    "select nextval('rivers_id_seq')",
    'select * from mills for update',
    'select * into copied from mills',
    'create temporary table t (x int)',
    'truncate mills',
    'explain analyze delete from mills',
    'set transaction read write',
    "select set_config('transaction_read_only', 'off', true)",
    'commit',
    'begin',
    'commit; drop table mills',
    'select 1; drop table mills',
    'select 1; commit; drop table mills',
    'select 1; rollback; begin; drop table mills; commit',
    'select 1;;drop table mills',
    'select 1 /* */; /* */ drop table mills',
    "do $$ begin execute 'drop table mills'; end $$",
    'call committing()',
    'select drop_mills()',
    'vacuum',
    'listen x',
    'prepare p as delete from mills',
    'declare c cursor for select 1',
  ])('writes nothing: %s', async (sql) => {
    await expect(run('sql_query', { sql })).rejects.toThrow();
    expect((await run('sql_query', { sql: 'select count(*) from mills' })).text).toContain('\n3\n');
    expect((await run('sql_query', { sql: 'select count(*) from rivers' })).text).toContain(
      '\n2\n',
    );
  });
});

describe('sql_query on a server', () => {
  it.each([
    "copy mills to program 'touch /tmp/x'",
    "copy mills from program 'echo'",
    "copy mills to '/tmp/x'",
    'alter system set work_mem = 1',
    'create extension dblink',
    'lock mills',
    "notify x, 'y'",
    'reset all',
    'discard all',
    'savepoint s',
    'rollback and chain',
    'select 1) as q; drop table mills; --',
    'select 1) as q union all (select 2',
    "select 1) union all select repeat('x', 900000000) from (select 1",
    'select 1 /*',
    "select '",
    'select $$',
    'select 1 \\; drop table mills',
    'select 1 \\g drop table mills',
    'select U&"d\\0072op"; drop table mills',
    'fetch 5 from millrace_checked',
    'close all',
  ])('refuses %s', async (sql) => {
    const before = await state();
    expect(await messageOf(sql)).not.toMatch(/^no error/u);
    expect(await state()).toEqual(before);
  });

  it('undoes what functions do in the transaction, and releases what they lock', async () => {
    const before = await state();
    for (const sql of [
      'select lo_create(0)',
      'select pg_advisory_lock(7)',
      "select set_config('statement_timeout', '0', false), set_config('search_path', 'x', false)",
      "select pg_notify('x', 'y')",
      'select pg_advisory_lock(8), 1 / (random() * 0)::int',
    ]) {
      await messageOf(sql);
      expect(await state()).toEqual(before);
    }
    const { text } = await query(
      "select current_setting('statement_timeout'), current_setting('search_path')",
    );
    expect(text).toContain('15s | "$user", public');
  });

  it('survives a statement that closes its connection', async () => {
    const pool = poolOf();
    const errors: string[] = [];
    pool.on('acquire', (client) => {
      const emit = client.emit.bind(client);
      client.emit = (event: string, ...given: unknown[]) => {
        if (event !== 'error') return Reflect.apply(emit, client, [event, ...given]) === true;
        // Without a listener, it would end the process.
        errors.push(client.listenerCount('error') === 0 ? 'unheard' : 'heard');
        return true;
      };
    });
    const sql = 'select pg_terminate_backend(pg_backend_pid())';
    expect(await messageOf(sql, { postgres: pool })).toContain('terminating connection');
    while (errors.length === 0) await new Promise(setImmediate);
    expect(errors).not.toContain('unheard');
    expect((await query('select 1 as one', { postgres: pool })).text).toContain('one');
  });

  it('spends no time on long white space', async () => {
    const pattern = /[\s;]+$/u;
    const sql = `select${' '.repeat(19_000)}1 as one ;\n; `;
    expect((await query(sql)).text).toBe('one\n1\n[1 row.]');
    expect(withoutSemicolon(sql)).toBe(sql.replace(pattern, ''));
    const long = `x${' '.repeat(200_000)}x`;
    const before = process.cpuUsage().user / 1_000;
    expect(withoutSemicolon(long)).toBe(long);
    expect(process.cpuUsage().user / 1_000 - before).toBeLessThan(1_000);
    expect(withoutSemicolon(' ;; ')).toBe('');
  });

  it('has one time-out, also for the names in an error', async () => {
    const failed = Object.assign(new Error('relation "x" does not exist'), { code: '42P01' });
    const isDeclaration = ({ text }: { readonly text: string }) => text.startsWith('declare');
    let connections = 0;
    const postgres = {
      connect: () => {
        connections += 1;
        if (connections > 1) return new Promise<never>(() => undefined);
        return Promise.resolve({
          release: () => undefined,
          query: (given: { readonly text: string }) =>
            isDeclaration(given)
              ? Promise.reject(failed)
              : Promise.resolve({ rows: [], rowCount: null }),
        });
      },
    };
    const scheduler = new VirtualTimeScheduler();
    const failure = runTool(
      named(sqlTools({ postgres }), 'sql_query'),
      { sql: 'select 1' },
      { scheduler },
    ).catch((thrown: unknown) => thrown);
    while (connections < 2) await new Promise(setImmediate);
    scheduler.flush();
    expect(await failure).toMatchObject({ code: 'timeout' });
  });

  it('stops a slow statement, on the server too', async () => {
    const sql = 'select pg_sleep(100), 4711';
    expect(await messageOf(sql, { timeoutMs: 300 })).toMatch(
      /took longer than 300 ms|statement timeout/u,
    );
    const running = async (): Promise<number> => {
      const { rows } = await admin.query(
        "select 1 from pg_stat_activity where query like '%4711%' and state = 'active' and pid <> pg_backend_pid()",
      );
      return rows.length;
    };
    while ((await running()) > 0);
  });

  it('does not let a statement turn off its time-out', async () => {
    const sql =
      "select set_config('statement_timeout', '0', false), pg_sleep(100) from generate_series(1, 3)";
    expect(await messageOf(sql, { timeoutMs: 300 })).toMatch(
      /took longer than 300 ms|statement timeout/u,
    );
  });

  it('I5: unsubscribing ends the statement on the server', async () => {
    const [, tool] = sqlTools({ postgres: poolOf(), timeoutMs: 600_000 });
    const subscription = (tool as Tool)
      .run$({ sql: 'select pg_sleep(600), 4712' }, lentToolContext())
      .subscribe({ error: () => undefined });
    const running = async (): Promise<number> => {
      const { rows } = await admin.query(
        "select 1 from pg_stat_activity where query like 'fetch%' and state = 'active'",
      );
      return rows.length;
    };
    while ((await running()) === 0);
    subscription.unsubscribe();
    while ((await running()) > 0);
  });

  it('holds no huge results', async () => {
    const before = process.memoryUsage().rss;
    const sql = "select n, repeat('x', 10000000) from generate_series(1, 2) as n";
    expect((await query(sql)).text.length).toBeLessThan(2_000);
    const wide = `select ${Array.from({ length: 200 }, (_, n) => `repeat('x', 1000) as c${n}`).join()}`;
    expect(await messageOf(wide)).toContain('Select fewer columns.');
    expect(
      (await query("select repeat('x', 1000) from generate_series(1, 50000)")).text.length,
    ).toBeLessThan(10_200);
    expect(process.memoryUsage().rss - before).toBeLessThan(150e6);
  });

  it('returns its connection after errors', async () => {
    const pool = poolOf();
    for (let i = 0; i < 5; i += 1) await messageOf('select nothing', { postgres: pool });
    expect((await query('select 1 as one', { postgres: pool })).text).toContain('one');
    expect(pool.totalCount).toBeLessThanOrEqual(2);
    expect(pool.idleCount).toBe(pool.totalCount);
  });

  it('a user with few rights is the protection from functions of the server', async () => {
    const dangers = [
      "select pg_read_file('/etc/passwd')",
      "select lo_import('/etc/passwd')",
      "select pg_ls_dir('/')",
      'select * from pg_authid',
      'select pg_reload_conf()',
      'select * from hidden',
    ];
    for (const sql of dangers) {
      expect(await messageOf(sql, { postgres: reader })).toMatch(
        /permission denied.*does not have permission/u,
      );
    }
    // A read-only transaction does not stop these for a superuser: the README says so.
    expect(await messageOf("select length(pg_read_file('/etc/passwd')) > 0 as was_read")).toContain(
      'true',
    );
    const other = `select dblink_exec('${server.url}', 'create table made_elsewhere ()')`;
    expect(await messageOf(other)).toContain('CREATE TABLE');
    const { rows } = await admin
      .query('drop table made_elsewhere returning 1')
      .catch(() => admin.query('drop table made_elsewhere'));
    expect(rows).toEqual([]);
  });

  it('describes only tables that its user may read', async () => {
    const { text } = await runTool(named(sqlTools({ postgres: reader }), 'sql_schema'), {});
    expect(text).toContain('table mills');
    expect(text).not.toContain('hidden');
  });
});

describe('sql_execute', () => {
  it('exists only with an approver', () => {
    expect(sqlTools({ postgres: server.url }).map(({ name }) => name)).toEqual([
      'sql_schema',
      'sql_query',
    ]);
  });

  it('T12: runs what the approver has seen, and nothing else', async () => {
    const seen: string[] = [];
    const tools = sqlTools({
      postgres: poolOf(),
      approve: ({ value }) => {
        seen.push(value.sql);
        return value.sql.startsWith('update') || { approved: false, reason: 'Only updates.' };
      },
    });
    const [update, drop] = [
      "update mills set wheels = 2 where name = 'Clock' returning id, wheels;",
      'drop table mills',
    ];
    const model = scriptedModel(
      [toolCall('sql_execute', { sql: update })],
      [toolCall('sql_execute', { sql: drop })],
      [toolCall('sql_execute', { sql: `${update} drop table mills` })],
      [text('Done.')],
    );
    const { toolCalls } = await createAgent({ model, tools }).call('x');
    expect(seen).toEqual([update, drop, `${update} drop table mills`]);
    expect(toolCalls[0]?.output).toBe('id | wheels\n3 | 2\n[1 row.]');
    expect(toolCalls[1]?.output).toContain('Only updates.');
    expect(toolCalls[2]?.output).toContain('cannot insert multiple commands');
    const { rows } = await admin.query(
      'update mills set wheels = null where id = 3 returning (select wheels from mills where id = 3)',
    );
    expect(rows).toEqual([{ wheels: 2 }]);
  });

  it('leaves no setting to the next user of the connection', async () => {
    const pool = poolOf();
    const tools = sqlTools({ postgres: pool, approve: true });
    await runTool(named(tools, 'sql_execute'), { sql: 'set search_path = nowhere' });
    expect((await pool.query('show search_path')).rows).toEqual([
      { search_path: '"$user", public' },
    ]);
  });

  it('commits on PGlite, and reports the number of rows', async () => {
    const tools = sqlTools({ postgres: pglite, approve: true });
    const run = (sql: string) => runTool(named(tools, 'sql_execute'), { sql });
    expect((await run('create table t (x int)')).text).toMatch(/^Done/u);
    expect((await run('insert into t values (1), (2)')).text).toBe('Done: 2 rows.');
    const large =
      "insert into t values (2) returning 9007199254740993 as n, '{9007199254740993}'::int8[] as list";
    expect((await run(large)).text).toContain('9007199254740993 | ');
    await run('delete from t where ctid = (select max(ctid) from t)');
    await expect(run('insert into t values (3); drop table t')).rejects.toThrow(
      'multiple commands',
    );
    expect((await pglite.query('select * from t')).rows).toHaveLength(2);
  });
});

describe('sqlTools', () => {
  it.each([
    [{}, "sqlTools() needs 'postgres'"],
    [{ postgres: 'mysql://x' }, "'postgres' must be a URL"],
    [{ postgres: {} }, "'postgres' must be a URL"],
    [{ postgres: 'postgres://x/y', approve: 'yes' }, "'approve' must be"],
    [{ postgres: 'postgres://x/y', maxRows: 0 }, "'maxRows' must be"],
  ])('refuses the options %j', (options, message) => {
    expect(() => sqlTools(options as never)).toThrow(message);
  });

  it('does not show a URL that may contain a password', () => {
    for (const postgres of [
      'postgres://me:TOPSECRET@host:99999/x',
      'mysql://me:TOPSECRET@host/x',
    ]) {
      expect(() => sqlTools({ postgres })).toThrow(/^(?!.*TOPSECRET).*'postgres' must be a URL/u);
    }
  });

  it('reports a database that cannot be reached without its password', async () => {
    const postgres = 'postgres://user:TOPSECRET@127.0.0.1:1/x';
    const error: unknown = await query('select 1', { postgres }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'connection', message: 'The database cannot be reached.' });
    const wrong = reader.replace(':secret@', ':TOPSECRET@');
    const refused: unknown = await query('select 1', { postgres: wrong }).catch(
      (thrown: unknown) => thrown,
    );
    expect(refused).toMatchObject({ code: 'config' });
    expect(`${String(error)} ${String(refused)}`).not.toContain('TOPSECRET');
  });
});
