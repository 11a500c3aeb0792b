import { resolve } from 'node:path';
import { checkOptions, defined, isFunction, type Rule } from 'millrace/values';
import { type CallStoreOptions, createCallStore, isSeal } from 'millrace/journal';
import { asyncScheduler, concat, defer, from, ignoreElements } from 'rxjs';
import { createClosing } from '../closing.js';
import { databases } from '../databases.js';
import { type FileCallsOptions, fileRules } from '../files/file-calls.js';
import { checkDirectory } from '../files/file-system.js';
import { isSqliteMemoryOptions, type StoredMemoryOptions } from '../sql/memory-options.js';
import { tableCalls } from '../sql/table-calls.js';
import { tableLongTermMemory } from '../sql/table-long-term-memory.js';
import { tableMemory } from '../sql/table-memory.js';
import type { DatabaseStore } from '../store.js';
import { storedName } from '../stored-name.js';
import { sqliteEngine } from './engine.js';
import { sqliteCallTable } from './sqlite-call-table.js';
import { sqliteConversation } from './sqlite-conversation.js';
import { hasSqlite } from './sqlite-driver.js';
import { noDriver } from './sqlite-error.js';
import { sqliteMemoryTable } from './sqlite-memory-table.js';
import { sqliteSessions } from './sqlite-sessions.js';

/** Options of `openSqlite`. */
export interface SqliteOptions extends FileCallsOptions, CallStoreOptions {
  /** Options of the long-term memory. */
  readonly longTermMemory?: SqliteMemoryOptions | undefined;
}

/** Options of the long-term memory of a store in SQLite. */
export type SqliteMemoryOptions = Omit<StoredMemoryOptions, 'language'>;

/**
 * Opens a store in a file, such as `./data/millrace.db`: a SQLite database, without a server, for any number of processes
 * on one machine. Creates the file and its directory on first use, readable only by this user. A step is on disk when it is
 * recorded. A thread holds the connection, so nothing blocks the event loop, and calls that write at the same moment share
 * one sync of the disk. While another process writes, operations are retried for up to 30 seconds.
 *
 * Requires Node 22.13 or later, or the package `libsql`: throws `config` otherwise. Errors with `store` if the disk is
 * full or the file was moved or deleted, and with `invalidState` if the file is damaged, has a later format or belongs to
 * another program. Messages contain no values.
 */
export const openSqlite = (path: string, options: SqliteOptions = {}): DatabaseStore => {
  checkDirectory('openSqlite()', path, "a file, such as './millrace.db'");
  checkOptions('openSqlite()', options, rules);
  if (!hasSqlite()) throw noDriver();
  const {
    leaseMs = 10_000,
    scheduler = asyncScheduler,
    events,
    seal,
    longTermMemory = {},
  } = options;
  const engine = sqliteEngine(resolve(path), scheduler);
  const table = sqliteCallTable(engine, scheduler);
  const closing = createClosing();
  const driver = tableCalls(() => Promise.resolve(table), { leaseMs, scheduler });
  const store: DatabaseStore = {
    calls: createCallStore(closing.calls(driver), { scheduler, ...defined({ events, seal }) }),
    memory: closing.memory(
      tableMemory((key, sessionId) => sqliteConversation(engine, key, sessionId)),
    ),
    sessions: closing.sessions(sqliteSessions(engine, scheduler)),
    longTermMemory: tableLongTermMemory(
      () => Promise.resolve(sqliteMemoryTable(engine)),
      scheduler,
      longTermMemory,
    ),
    release$: (callIds) =>
      closing
        .whileOpen$(() => from(table.releaseAll(callIds.map(storedName))))
        .pipe(ignoreElements()),
    // Releases all leases before it closes the file.
    close$: () =>
      concat(closing.close$(), defer(() => from(engine.close())).pipe(ignoreElements())),
  };
  databases.set(store, { sqlite: engine, scheduler });
  return store;
};

const rules: Readonly<Record<keyof SqliteOptions, Rule>> = {
  ...fileRules,
  events: isFunction,
  seal: isSeal,
  longTermMemory: isSqliteMemoryOptions,
};
