import { checkFormat } from 'millrace/values';
import type { Query, Sql } from './sql.js';
import { numberIn } from './text.js';

/** An arbitrary key for the advisory lock. */
const lock = 7_242_305_151;

/** The version of the format of all tables, the only one that is read. */
const tableFormat = 1;

/** Creates tables once across processes. The table `versions` records the version of their format. Throws `invalidState` if they have another one. */
export const makeTables = async (
  { query, transaction, schema }: Pick<Sql, 'query' | 'transaction' | 'schema'>,
  statements: readonly string[],
  versions = 'versions',
): Promise<void> => {
  const table = `${schema}.${versions}`;
  if (await areMade(query, table)) return;
  await transaction(async (run) => {
    await run('select pg_advisory_xact_lock($1::bigint)', [lock]);
    await run(`create schema if not exists ${schema}`);
    await run(
      `create table if not exists ${table} (
        version integer primary key,
        created_at timestamptz not null default clock_timestamp()
      )`,
    );
    if (await areMade(run, table)) return;
    for (const statement of statements) await run(statement);
    await run(`insert into ${table} (version) values ($1)`, [tableFormat]);
  });
};

const areMade = async (query: Query, table: string): Promise<boolean> => {
  const [found = {}] = await query('select to_regclass($1) is not null as there', [table]);
  if (found['there'] !== true) return false;
  const [row] = await query(`select version from ${table} order by version desc limit 1`);
  if (row === undefined) return false;
  checkFormat(`The database table ${table}`, numberIn(row, 'version'), tableFormat);
  return true;
};
