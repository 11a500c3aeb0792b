import { existsSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import type { PGlite } from '@electric-sql/pglite';
import { MillraceError } from '@millrace/core';
import { Subject, type SchedulerLike } from 'rxjs';
import { directoryMissing, toStoreError } from '../files/file-system.js';
import { memoryStatements } from '../sql/memory-statements.js';
import { closed } from '../closing.js';
import { markDirectory } from '../mark-directory.js';
import { createPendingWork, type PendingWork } from '../sql/pending-work.js';
import { makeTables } from '../sql/make-tables.js';
import { addedColumns, tableStatements } from '../sql/tables.js';
import { toSqlError } from '../sql/sql-error.js';
import type { LazySql, Query, Sql } from '../sql/sql.js';
import { engineError } from './engine-error.js';
import { type DirectoryLock, lockDirectory } from './lock-directory.js';
import { startDatabase } from './start-database.js';

export interface EmbeddedSqlOptions {
  readonly leaseMs: number;
  readonly scheduler: SchedulerLike;
  readonly onProgress: (message: string) => void;
}

/** A database in a directory that runs in this process. Opens on first use. */
export const embeddedSql = (
  directory: string,
  { leaseMs, scheduler, onProgress }: EmbeddedSqlOptions,
): LazySql => {
  const schema = 'millrace';
  const where = `The embedded database in ${directory}`;
  const state: { opened?: Promise<Opened>; closed?: Promise<void> } = {};
  const pending = createPendingWork();
  const failed = (error: unknown): MillraceError => {
    if (isClosed()) return closed();
    const known = engineError(error);
    return known === undefined ? toSqlError(error, where) : toStoreError(directory)(known);
  };

  const isClosed = (): boolean => state.closed !== undefined;
  /** The database is lost to another process, or because its directory was moved or deleted. */
  const lost = (): MillraceError =>
    existsSync(directory) ? takenOver(where) : directoryMissing(directory);

  const connect = async (): Promise<Opened> => {
    const lock = await lockDirectory(directory, leaseMs, scheduler);
    markDirectory(directory);
    try {
      return await started(lock);
    } catch (error) {
      lock.release();
      throw toStoreError(directory)(engineError(error) ?? error);
    }
  };
  const started = async (lock: DirectoryLock): Promise<Opened> => {
    const { database, hasVectors } = await startDatabase(directory, onProgress);
    // Do not even close the database: that would write to files that now belong to another process.
    if (!lock.start()) throw lost();
    try {
      const sql = sqlOf(database, { schema, hasVectors, lock, lost, failed, isClosed, pending });
      await makeTables(sql, tableStatements(schema), 'versions', addedColumns(schema));
      if (hasVectors) await sql.query(memoryStatements(schema).makeVectors);
      // No other process uses this database, so all leases are stale.
      await sql.query(`update ${schema}.calls set owner = null, expires_at = null`);
      return { sql, database, lock };
    } catch (error) {
      // The next attempt starts a new engine, and two engines must not share a directory.
      if (lock.isHeld()) await database.close();
      throw error;
    }
  };
  const end = async (): Promise<void> => {
    const opened = await state.opened?.catch(() => undefined);
    if (opened === undefined) return;
    // Closing writes, so do it only if no other process has taken over.
    await pending.settled();
    if (opened.lock.isHeld()) await opened.database.close();
    opened.lock.release();
  };
  return {
    open: async () => {
      if (state.closed !== undefined) throw closed();
      // The next caller retries a failed attempt.
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
  readonly pending: PendingWork;
}

const takenOver = (where: string): MillraceError =>
  new MillraceError(
    'conflict',
    `${where} was taken over by another process because this one sent no heartbeat. This process can no longer write to it: exit, or close the store and open it again.`,
  );

/** How long statements may follow each other before the rest of the process gets a turn, in milliseconds. */
const turnMs = 20;

/**
 * The engine works in this thread, and its promises settle without a turn of the event loop: thousands of statements in a
 * row would stop all timers and sockets of the process, the heartbeat of the lock as well.
 */
const createTurns = (): (() => Promise<void>) => {
  let since = performance.now();
  let turn: Promise<void> | undefined;
  return async () => {
    if (turn === undefined && performance.now() - since < turnMs) return;
    // All wait for the same one, so statements keep their order.
    turn ??= setImmediate().then(() => {
      since = performance.now();
      turn = undefined;
    });
    await turn;
  };
};

const sqlOf = (
  database: PGlite,
  { schema, hasVectors, lock, lost, failed, isClosed, pending }: SqlParts,
): Sql => {
  const changed$ = new Subject<string>();
  const takeTurns = createTurns();
  /** Checks the lock first: a process that was suspended for long may have lost the database. */
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isClosed() && !lock.isHeld()) throw closed();
    try {
      return await pending.track(async () => {
        await takeTurns();
        if (!lock.isHeld()) throw lost();
        return work();
      });
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
