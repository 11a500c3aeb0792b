import { resolve } from 'node:path';
import { checkOptions, defined, isFunction, type Rule } from '@millrace/core/adapter';
import type { CallStoreOptions } from '@millrace/core/journal';
import { asyncScheduler } from 'rxjs';
import { checkDirectory } from '../files/failure.js';
import { type FileCallsOptions, fileRules } from '../files/file-calls.js';
import { databaseStore } from '../sql/database-store.js';
import { isMemoryOptions, type StoredMemoryOptions } from '../sql/sql-long-term-memory.js';
import type { DatabaseStore } from '../store.js';
import { embeddedSql } from './embedded-sql.js';

/** What an embedded store is told. */
export interface EmbeddedOptions extends FileCallsOptions, CallStoreOptions {
  /** How users are remembered. */
  readonly longTermMemory?: StoredMemoryOptions;
  /** Is told in a sentence what takes long: to make a database takes some seconds, once. Default: a line on stderr, where that is a terminal. */
  readonly onProgress?: (message: string) => void;
}

/**
 * Opens a store in a directory: a Postgres in this process (PGlite), which needs no server, and which one process has at a time; another one gets `conflict`. A step
 * outlasts this process. It needs the package `@electric-sql/pglite`, and for memories by their meaning `@electric-sql/pglite-pgvector`.
 */
export const openEmbedded = (directory: string, options: EmbeddedOptions = {}): DatabaseStore => {
  checkDirectory('openEmbedded()', directory);
  checkOptions('openEmbedded()', options, rules);
  const { leaseMs = 10_000, scheduler = asyncScheduler, onProgress = toTerminal } = options;
  const { longTermMemory = {}, events } = options;
  const sql = embeddedSql(resolve(directory), { leaseMs, scheduler, onProgress });
  const own = { leaseMs, scheduler, longTermMemory, ...defined({ events }) };
  return databaseStore(sql, own);
};

const rules: Readonly<Record<keyof EmbeddedOptions, Rule>> = {
  ...fileRules,
  onProgress: isFunction,
  events: isFunction,
  longTermMemory: isMemoryOptions,
};

const toTerminal = (message: string): void => {
  if (process.stderr.isTTY) process.stderr.write(`${message}\n`);
};
