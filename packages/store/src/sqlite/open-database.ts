import { closeSync, openSync, statSync } from 'node:fs';
import { storeApplicationId } from 'millrace/values';
import { databaseOn, type OpenDatabase } from './database.js';
import { KnownFailure } from './failure.js';
import { fieldOf } from './field-of.js';
import type { SqliteDriver } from './sqlite-driver.js';
import { parts } from './parts.js';
import type { TablesOfPart } from './tables.js';

export interface DatabaseFile {
  readonly database: OpenDatabase;
  /** Whether the path still leads to this file. */
  isInPlace(): boolean;
}

/** Opens the file, in a directory that exists. Creates it, readable only by this user, if it is missing and may be new. */
export const openDatabase = (
  driver: SqliteDriver,
  path: string,
  mayBeNew: boolean,
): DatabaseFile => {
  if (mayBeNew) createFile(path);
  const identity = identityOf(path);
  if (identity === undefined) throw new KnownFailure({ type: 'moved' });
  const connection = driver.open(path);
  try {
    // The scheduler of the store waits for other processes, not this thread.
    connection.exec('pragma busy_timeout = 0; pragma temp_store = memory;');
    const database = databaseOn(connection);
    if (!isOwn(database)) {
      // Before anything is written, and in the file itself, not in its log: file tools recognize a store by it.
      connection.exec(
        `pragma application_id = ${storeApplicationId}; pragma wal_checkpoint(truncate);`,
      );
    }
    const [{ journal_mode: mode } = {}] = connection.prepare('pragma journal_mode = wal').all([]);
    if (mode !== 'wal') throw new KnownFailure({ type: 'noSharedMemory' });
    // A sync of macOS alone leaves data in the cache of the disk. Other systems ignore the first of these.
    connection.exec(
      'pragma fullfsync = 1; pragma foreign_keys = on; pragma wal_autocheckpoint = 2000;',
    );
    makeTables(database);
    return { database, isInPlace: () => identityOf(path) === identity };
  } catch (error) {
    connection.close();
    throw error;
  }
};

/**
 * Creates the file if it does not exist. One that exists is not opened: to close it would release all locks of this process on it,
 * also those of other stores (https://sqlite.org/howtocorrupt.html, 2.2).
 */
const createFile = (path: string): void => {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (fieldOf(error, 'code') !== 'EEXIST') throw error;
    // A link to a file that does not exist.
    if (identityOf(path) === undefined) closeSync(openSync(path, 'a', 0o600));
  }
};

/** Names a file even after it was replaced by another one at the same path; undefined if it does not exist. */
const identityOf = (path: string): string | undefined => {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev} ${found.ino}`;
};

/** Whether the database belongs to this package. Throws if it belongs to another program: it is neither empty nor ours. */
const isOwn = (database: OpenDatabase): boolean => {
  const id = fieldOf(database.get('pragma application_id'), 'application_id');
  if (id === storeApplicationId) return true;
  const isEmpty = database.get('select 1 from sqlite_schema limit 1') === undefined;
  if (id !== 0 || !isEmpty) throw new KnownFailure({ type: 'foreign' });
  return false;
};

/** Creates the tables of parts that have none, once across processes, and checks the formats of the others. */
const makeTables = (database: OpenDatabase): void => {
  if (missingParts(database).length === 0) return;
  database.waitForDisk(true);
  database.transaction(() => {
    database.run(
      'create table if not exists formats (part text primary key, version integer not null) strict',
    );
    for (const { part, format, statements } of missingParts(database)) {
      for (const statement of statements) database.run(statement);
      database.run('insert into formats (part, version) values (?, ?)', part, format);
    }
  });
};

const missingParts = (database: OpenDatabase): readonly TablesOfPart[] => {
  const hasFormats = database.get(`select 1 from sqlite_schema where name = 'formats'`);
  if (hasFormats === undefined) return parts;
  const found = new Map(
    database
      .all('select part, version from formats')
      .map(({ part, version }) => [part, version] as const),
  );
  for (const { part, format } of parts) {
    const version = found.get(part) ?? format;
    if (version !== format)
      throw new KnownFailure({ type: 'format', part, found: version, read: format });
  }
  return parts.filter(({ part }) => !found.has(part));
};
