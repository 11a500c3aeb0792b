import { existsSync } from 'node:fs';
import type { PGlite } from '@electric-sql/pglite';
import { MillraceError } from '@millrace/core';
import { Subject, type SchedulerLike } from 'rxjs';
import { directoryGone, fileFailure } from '../files/failure.js';
import { memoryStatements } from '../sql/memory-statements.js';
import { closed } from '../closing.js';
import { createTracked, type Tracked } from '../sql/tracked.js';
import { migrate } from '../sql/migrate.js';
import { sqlFailure } from '../sql/sql-failure.js';
import type { LazySql, Query, Sql } from '../sql/sql.js';
import { engineError } from './engine-error.js';
import { type DirectoryLock, lockDirectory } from './lock-directory.js';
import { startDatabase } from './start-database.js';

/** What an embedded database is told. */
export interface EmbeddedSqlOptions {
  readonly leaseMs: number;
  readonly scheduler: SchedulerLike;
  readonly onProgress: (message: string) => void;
}

/** Opens a database in a directory, in this process, when it is first used. */
export const embeddedSql = (
  directory: string,
  { leaseMs, scheduler, onProgress }: EmbeddedSqlOptions,
): LazySql => {
  const schema = 'millrace';
  const where = `The embedded database in ${directory}`;
  const state: { opened?: Promise<Opened>; closed?: Promise<void> } = {};
  const tracked = createTracked();
  const failed = (error: unknown): MillraceError => {
    if (isClosed()) return closed();
    const known = engineError(error);
    return known === undefined ? sqlFailure(error, where) : fileFailure(directory)(known);
  };

  const isClosed = (): boolean => state.closed !== undefined;
  /** The error of who has lost the database: to another process, or because its directory was moved or deleted. */
  const lost = (): MillraceError =>
    existsSync(directory) ? takenOver(where) : directoryGone(directory);

  const connect = async (): Promise<Opened> => {
    const lock = await lockDirectory(directory, leaseMs, scheduler);
    try {
      return await started(lock);
    } catch (error) {
      lock.release();
      throw fileFailure(directory)(engineError(error) ?? error);
    }
  };
  const started = async (lock: DirectoryLock): Promise<Opened> => {
    const { database, hasVectors } = await startDatabase(directory, onProgress);
    // Nothing more is done with it, not even to close it: that would write into what another one has.
    if (!lock.start()) throw lost();
    try {
      const sql = sqlOf(database, { schema, hasVectors, lock, lost, failed, isClosed, tracked });
      await migrate(sql);
      if (hasVectors) await sql.query(memoryStatements(schema).makeVectors);
      // Nobody else has this database: who had a lease is gone.
      await sql.query(`update ${schema}.calls set owner = null, expires_at = null`);
      return { sql, database, lock };
    } catch (error) {
      // The next who tries has an engine of his own, and two must not be at one directory.
      if (lock.isHeld()) await database.close();
      throw error;
    }
  };
  const end = async (): Promise<void> => {
    const opened = await state.opened?.catch(() => undefined);
    if (opened === undefined) return;
    // Where another process has it by now, nothing more is written to it.
    await tracked.settled();
    if (opened.lock.isHeld()) await opened.database.close();
    opened.lock.release();
  };
  return {
    open: async () => {
      if (state.closed !== undefined) throw closed();
      // What failed is tried again by the next who asks.
      state.opened ??= connect().catch((error: unknown) => {
        delete state.opened;
        throw error;
      });
      return (await state.opened).sql;
    },
    close: () => {
      state.closed ??= end();
      return state.closed;
    },
  };
};

interface Opened {
  readonly sql: Sql;
  readonly database: PGlite;
  readonly lock: DirectoryLock;
}

interface SqlParts {
  readonly schema: string;
  readonly hasVectors: boolean;
  readonly lock: DirectoryLock;
  readonly lost: () => MillraceError;
  readonly failed: (error: unknown) => MillraceError;
  readonly isClosed: () => boolean;
  readonly tracked: Tracked;
}

const takenOver = (where: string): MillraceError =>
  new MillraceError(
    'conflict',
    `${where} was taken over by another process, as this one gave no sign of life. Nothing more is written here: end this process, or close the store and open another one.`,
  );

const sqlOf = (
  database: PGlite,
  { schema, hasVectors, lock, lost, failed, isClosed, tracked }: SqlParts,
): Sql => {
  const changed$ = new Subject<string>();
  /** One that was stopped for long must not write into what another one has by now. */
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isClosed() && !lock.isHeld()) throw closed();
    if (!lock.isHeld()) throw lost();
    try {
      return await tracked.track(work);
    } catch (error) {
      throw failed(error);
    }
  };
  const query: Query = (text, values = []) =>
    guarded(async () => (await database.query<Record<string, unknown>>(text, [...values])).rows);
  return {
    schema,
    hasVectors,
    query,
    transaction: (work) =>
      guarded(() =>
        database.transaction((transaction) =>
          work(
            async (text, values = []) =>
              (await transaction.query<Record<string, unknown>>(text, [...values])).rows,
          ),
        ),
      ),
    notify: (topic) => changed$.next(topic),
    notices$: changed$.asObservable(),
  };
};
