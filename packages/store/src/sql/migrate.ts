import { MillraceError } from '@millrace/core';
import type { Query, Sql } from './sql.js';
import { numberIn } from './text.js';

/** An arbitrary key for the advisory lock. */
const lock = 7_242_305_151;

/**
 * Migrates tables to this version of the package, once across processes. The table `versions` counts the applied lists
 * of statements. Throws if the tables have a later version.
 */
export const migrate = async (
  { query, transaction, schema }: Pick<Sql, 'query' | 'transaction' | 'schema'>,
  migrations: readonly (readonly string[])[],
  versions = 'versions',
): Promise<void> => {
  const table = `${schema}.${versions}`;
  if (isUpToDate(await versionOf(query, table), migrations.length, schema)) return;
  await transaction(async (query) => {
    await query('select pg_advisory_xact_lock($1::bigint)', [lock]);
    await query(`create schema if not exists ${schema}`);
    await query(
      `create table if not exists ${table} (
        version integer primary key,
        applied_at timestamptz not null default clock_timestamp()
      )`,
    );
    const version = await versionOf(query, table);
    if (isUpToDate(version, migrations.length, schema)) return;
    for (const [index, statements] of migrations.entries()) {
      if (index < version) continue;
      for (const statement of statements) await query(statement);
      await query(`insert into ${table} (version) values ($1)`, [index + 1]);
    }
  });
};

const versionOf = async (query: Query, table: string): Promise<number> => {
  const [found = {}] = await query('select to_regclass($1) is not null as there', [table]);
  if (found['there'] !== true) return 0;
  const [row = {}] = await query(
    `select coalesce(max(version), 0)::integer as version from ${table}`,
  );
  return numberIn(row, 'version');
};

const isUpToDate = (version: number, latest: number, schema: string): boolean => {
  if (version <= latest) return version === latest;
  throw new MillraceError(
    'invalidState',
    `The tables in the schema '${schema}' have version ${version}, but this @millrace/store supports versions up to ${latest}. ` +
      'Install a newer @millrace/store, or use another schema.',
  );
};
