import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { PGlite } from '@electric-sql/pglite';
import { MillraceError } from '@millrace/core';
import { codeOf } from '../files/failure.js';

/** A database that runs in this process. */
export interface StartedDatabase {
  readonly database: PGlite;
  readonly hasVectors: boolean;
}

/** Starts the database in a directory, and makes one where there is none; that takes some seconds, and is said. */
export const startDatabase = async (
  directory: string,
  onProgress: (message: string) => void,
): Promise<StartedDatabase> => {
  const dataDir = join(directory, 'database');
  if (!existsSync(join(dataDir, 'PG_VERSION'))) {
    onProgress(`Making a database in ${directory}: that takes some seconds, once.`);
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
      'openEmbedded() needs the package of the database: npm install @electric-sql/pglite@0.5.14 @electric-sql/pglite-pgvector@0.0.15',
      { cause: error },
    );
  }
};

/** Without that package, memories are found by their words alone. */
const vectors = async () => {
  try {
    return (await import('@electric-sql/pglite-pgvector')).vector;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
};

const isMissing = (error: unknown): boolean => codeOf(error) === 'ERR_MODULE_NOT_FOUND';
