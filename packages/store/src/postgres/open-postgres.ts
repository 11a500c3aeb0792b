import { MillraceError } from 'millrace';
import {
  checkOptions,
  defined,
  having,
  isFunction,
  isObject,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import { type CallStoreOptions, isSeal } from 'millrace/journal';
import type { PoolConfig } from 'pg';
import { asyncScheduler, type SchedulerLike } from 'rxjs';
import { databaseStore } from '../sql/database-store.js';
import { isMemoryOptions, type StoredMemoryOptions } from '../sql/memory-options.js';
import type { DatabaseStore } from '../store.js';
import { postgresSql } from './postgres-sql.js';

/** Options of `openPostgres`. */
export interface PostgresOptions extends CallStoreOptions {
  /**
   * The schema of the tables, created if it does not exist. Up to 41 lower-case letters, digits and `_`. Default:
   * `millrace`.
   */
  readonly schema?: string | undefined;
  /**
   * How long a crashed writer keeps its call, in milliseconds by the clock of the server, minimum 500. A live writer
   * renews its lease every third of this time. Default: 10,000.
   */
  readonly leaseMs?: number | undefined;
  /**
   * How long a statement is repeated while the server is unavailable, in milliseconds: it restarts, a failover is under way,
   * connections are lost or refused, or it lacks disk space. After that, the call errors with `store`. 0: never. Default: `leaseMs`.
   */
  readonly retryMs?: number | undefined;
  /** Options of the long-term memory. */
  readonly longTermMemory?: StoredMemoryOptions | undefined;
  /** The timers. Default: `asyncScheduler`. */
  readonly scheduler?: SchedulerLike | undefined;
  /** Options of the `pg` pool, such as `max` and `ssl`. Default: 10 connections, 10 s to connect, 60 s per query. */
  readonly pool?: PoolConfig | undefined;
}

/**
 * Opens a store on a Postgres server (13 or later), for any number of processes. Steps are as durable as the server
 * makes them. All transactions are `read committed`, also if the default of the server differs. Serialization failures and
 * deadlocks are repeated, and so is everything else for `retryMs` while the server is unavailable; nothing takes effect
 * twice. After that, errors with `store`, `retryable`; recovers as soon as the server is back. Uses an extra connection to
 * listen for changes while a call is followed.
 */
export const openPostgres = (url: string, options: PostgresOptions = {}): DatabaseStore => {
  checkOptions('openPostgres()', options, rules);
  const {
    schema = 'millrace',
    leaseMs = 10_000,
    retryMs = leaseMs,
    scheduler = asyncScheduler,
    pool,
    events,
    seal,
  } = options;
  const { longTermMemory = {} } = options;
  if (!isUrl(url)) {
    // Do not print the value: it may contain a password.
    throw new MillraceError(
      'config',
      'openPostgres() needs the URL of a database: postgres://user:password@host:5432/database',
    );
  }
  const sql = postgresSql({ ...pool, connectionString: url }, { schema, scheduler, retryMs });
  const own = { leaseMs, scheduler, longTermMemory, ...defined({ events, seal }) };
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
  retryMs: wholeNumber(0),
  scheduler: having('schedule', 'an RxJS scheduler, such as asyncScheduler'),
  pool: isObject,
  events: isFunction,
  seal: isSeal,
  longTermMemory: isMemoryOptions,
};
