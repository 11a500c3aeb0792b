import { type CallStoreOptions, createCallStore } from 'millrace/journal';
import { concat, defer, from, ignoreElements } from 'rxjs';
import { createClosing } from '../closing.js';
import { databases } from '../databases.js';
import type { DatabaseStore } from '../store.js';
import { storedName } from '../stored-name.js';
import { abortable$, type LazySql } from './sql.js';
import type { CallLeaseOptions } from './call-leases.js';
import { postgresCallTable, sqlCalls } from './sql-calls.js';
import type { StoredMemoryOptions } from './memory-options.js';
import { sqlLongTermMemory } from './sql-long-term-memory.js';
import { sqlMemory } from './sql-memory.js';
import { sqlSessions } from './sql-sessions.js';

export interface DatabaseStoreOptions
  extends CallLeaseOptions, Omit<CallStoreOptions, 'scheduler'> {
  readonly longTermMemory: StoredMemoryOptions;
}

export const databaseStore = (
  sql: LazySql,
  { leaseMs, scheduler, longTermMemory, ...log }: DatabaseStoreOptions,
): DatabaseStore => {
  const closing = createClosing();
  const calls = closing.calls(sqlCalls(sql, { leaseMs, scheduler }));
  const store: DatabaseStore = {
    calls: createCallStore(calls, { scheduler, ...log }),
    memory: closing.memory(sqlMemory(sql)),
    sessions: closing.sessions(sqlSessions(sql)),
    longTermMemory: sqlLongTermMemory(sql, scheduler, longTermMemory),
    release$: (callIds) =>
      closing
        .whileOpen$(() => abortable$((signal) => release(sql, callIds, signal)))
        .pipe(ignoreElements()),
    // Release all leases before closing the connections.
    close$: () =>
      concat(
        defer(() => {
          sql.stop?.();
          return closing.close$();
        }),
        defer(() => from(sql.close())).pipe(ignoreElements()),
      ),
  };
  databases.set(store, { sql, scheduler });
  return store;
};

const release = async (
  sql: LazySql,
  callIds: readonly string[],
  signal: AbortSignal,
): Promise<void> => {
  await postgresCallTable(await sql.open(signal)).releaseAll(callIds.map(storedName), signal);
};
