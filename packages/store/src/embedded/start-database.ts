import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { PGlite } from '@electric-sql/pglite';
import { MillraceError } from '@millrace/core';
import { errorCode } from '../files/file-system.js';

export interface StartedDatabase {
  readonly database: PGlite;
  readonly hasVectors: boolean;
}

/** Starts the database in a directory. Creates it if needed, which takes some seconds and calls `onProgress`. */
export const startDatabase = async (
  directory: string,
  onProgress: (message: string) => void,
): Promise<StartedDatabase> => {
  const dataDir = join(directory, 'database');
  if (!existsSync(join(dataDir, 'PG_VERSION'))) {
    onProgress(`Creating a database in ${directory}. This takes a few seconds, once.`);
  }
  const [{ PGlite }, vector] = await Promise.all([loaded(), vectors()]);
  const database = await PGlite.create({
    dataDir,
    ...(vector === undefined ? {} : { extensions: { vector } }),
  });
  if (vector !== undefined) await database.exec('create extension if not exists vector');
  return { database, hasVectors: vector !== undefined };
};

const loaded = async () => {
  try {
    return await import('@electric-sql/pglite');
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw new MillraceError(
      'config',
      'openEmbedded() needs the database packages: npm install @electric-sql/pglite@0.5.14 @electric-sql/pglite-pgvector@0.0.15',
      { cause: error },
    );
  }
};

/** Without this package, memories are searched by keywords only. */
const vectors = async () => {
  try {
    return (await import('@electric-sql/pglite-pgvector')).vector;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
};

const isMissing = (error: unknown): boolean => errorCode(error) === 'ERR_MODULE_NOT_FOUND';
