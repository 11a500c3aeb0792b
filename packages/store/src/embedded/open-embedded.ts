import { resolve } from 'node:path';
import { checkOptions, defined, isFunction, type Rule } from '@millrace/core/values';
import { type CallStoreOptions, isSeal } from '@millrace/core/journal';
import { asyncScheduler } from 'rxjs';
import { checkDirectory } from '../files/file-system.js';
import { type FileCallsOptions, fileRules } from '../files/file-calls.js';
import { databaseStore } from '../sql/database-store.js';
import { isMemoryOptions, type StoredMemoryOptions } from '../sql/memory-options.js';
import type { DatabaseStore } from '../store.js';
import { embeddedSql } from './embedded-sql.js';

/** Options of `openEmbedded`. */
export interface EmbeddedOptions extends FileCallsOptions, CallStoreOptions {
  /** Options of the long-term memory. */
  readonly longTermMemory?: StoredMemoryOptions;
  /**
   * Called with a sentence before slow work: creating a database takes some seconds, once. Default: prints it to
   * stderr if that is a terminal.
   */
  readonly onProgress?: (message: string) => void;
}

/**
 * Opens a store in a directory: a Postgres in this process (PGlite), without a server. One process can open it at a
 * time; others get `conflict`. Recorded steps survive a crash of the process. Requires the package
 * `@electric-sql/pglite`, and `@electric-sql/pglite-pgvector` for semantic search of memories.
 */
export const openEmbedded = (directory: string, options: EmbeddedOptions = {}): DatabaseStore => {
  checkDirectory('openEmbedded()', directory);
  checkOptions('openEmbedded()', options, rules);
  const { leaseMs = 10_000, scheduler = asyncScheduler, onProgress = toTerminal } = options;
  const { longTermMemory = {}, events, seal } = options;
  const sql = embeddedSql(resolve(directory), { leaseMs, scheduler, onProgress });
  const own = { leaseMs, scheduler, longTermMemory, ...defined({ events, seal }) };
  return databaseStore(sql, own);
};

const rules: Readonly<Record<keyof EmbeddedOptions, Rule>> = {
  ...fileRules,
  onProgress: isFunction,
  events: isFunction,
  seal: isSeal,
  longTermMemory: isMemoryOptions,
};

const toTerminal = (message: string): void => {
  if (process.stderr.isTTY) process.stderr.write(`${message}\n`);
};
