import { memoryStatements } from '../sql/memory-statements.js';
import type { Query } from '../sql/sql.js';

/** Creates the table of vectors if the server has pgvector and the user may use it. Resolves to whether it exists. */
export const makeVectors = async (query: Query, schema: string): Promise<boolean> => {
  const [found] = await query(
    `select installed_version from pg_available_extensions where name = 'vector'`,
  );
  if (found === undefined) return false;
  try {
    if (found['installed_version'] === null) await query('create extension if not exists vector');
    const [table = {}] = await query('select to_regclass($1) is not null as there', [
      `${schema}.memory_vectors`,
    ]);
    if (table['there'] !== true) await query(memoryStatements(schema).makeVectors);
    return true;
  } catch {
    return false;
  }
};
