import { MillraceError } from '@millrace/core';
import {
  checkOptions,
  defined,
  having,
  isFunction,
  isObject,
  type Rule,
  wholeNumber,
} from '@millrace/core/adapter';
import type { CallStoreOptions } from '@millrace/core/journal';
import type { PoolConfig } from 'pg';
import { asyncScheduler, type SchedulerLike } from 'rxjs';
import { databaseStore } from '../sql/database-store.js';
import { isMemoryOptions, type StoredMemoryOptions } from '../sql/sql-long-term-memory.js';
import type { DatabaseStore } from '../store.js';
import { postgresSql } from './postgres-sql.js';

/** What a store on a server is told. */
export interface PostgresOptions extends CallStoreOptions {
  /** The schema of the tables, which is made where it is not there: lower-case letters, digits and `_`. Default: `millrace`. */
  readonly schema?: string;
  /**
   * How long a writer that is gone keeps its call from others, in milliseconds, from 500; it is renewed at each third of that. The time is that of the server. Default: 10,000.
   */
  readonly leaseMs?: number;
  /** How users are remembered. */
  readonly longTermMemory?: StoredMemoryOptions;
  /** What waits. Default: `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
  /** More for the pool of connections of `pg`, such as `max` and `ssl`. Default: up to 10 connections, which must come within 10 s, and statements of up to 60 s. */
  readonly pool?: PoolConfig;
}

/**
 * Opens a store on a Postgres server (13 or later), which any number of processes may use. A step is as safe as the server makes it. While the server cannot be reached
 * it errors with `store`, `retryable`, and goes on as soon as it can. One connection more listens for changes while somebody follows a call.
 */
export const openPostgres = (url: string, options: PostgresOptions = {}): DatabaseStore => {
  checkOptions('openPostgres()', options, rules);
  const {
    schema = 'millrace',
    leaseMs = 10_000,
    scheduler = asyncScheduler,
    pool,
    events,
  } = options;
  const { longTermMemory = {} } = options;
  if (!isUrl(url)) {
    // What was given may hold a password.
    throw new MillraceError(
      'config',
      'openPostgres() needs the URL of a database: postgres://user:password@host:5432/database',
    );
  }
  const sql = postgresSql({ ...pool, connectionString: url }, schema, scheduler);
  const own = { leaseMs, scheduler, longTermMemory, ...defined({ events }) };
  return databaseStore(sql, own);
};

const isUrl = (url: string): boolean => {
  if (!URL.canParse(url)) return false;
  const { protocol, password } = new URL(url);
  return /^postgres(?:ql)?:$/.test(protocol) && /^(?:[^%]|%[0-9a-f]{2})*$/i.test(password);
};

const rules: Readonly<Record<keyof PostgresOptions, Rule>> = {
  schema: [
    (value) => typeof value === 'string' && /^[a-z_][a-z0-9_]{0,40}$/.test(value),
    'up to 41 lower-case letters, digits and _',
  ],
  leaseMs: wholeNumber(500),
  scheduler: having('schedule', 'a scheduler of RxJS, such as asyncScheduler'),
  pool: isObject,
  events: isFunction,
  longTermMemory: isMemoryOptions,
};
