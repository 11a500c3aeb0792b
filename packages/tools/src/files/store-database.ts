import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { databaseBeside, isStoreDatabase, storeDatabaseBytes } from 'millrace/values';

export const storeRefusal = (path: string): Error =>
  new Error(`'${path}' must not be used: it belongs to a store of conversations.`);

/**
 * Opens a file to read it. Resolves to undefined if it is the database of a store, or has its locks: such a
 * store may have any name, share its directory with other files, and be created by any process at any time. A link or a pipe that has
 * replaced the file meanwhile is not followed and does not block.
 */
export const openUnlessDatabase = async (path: string): Promise<FileHandle | undefined> => {
  const file = await open(path, flags);
  const isHeld = await holdIfDatabase(file).catch(async (error: unknown) => {
    await file.close();
    throw error;
  });
  return isHeld ? undefined : file;
};

// Flags that a system does not support are undefined, which has no effect here.
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

const holdIfDatabase = async (file: FileHandle): Promise<boolean> => {
  const found = await file.stat({ bigint: true });
  if (!found.isFile()) return false;
  const start = Buffer.alloc(storeDatabaseBytes);
  await file.read(start, 0, start.length, 0);
  if (!isStoreDatabase(start) && !isLogIndex(start)) return false;
  held.set(file, identityOf(found));
  await closeDeleted();
  return true;
};

/**
 * The databases seen so far, with their identities. They stay open: to close one would release all locks of this process on
 * it, also those of the store (https://sqlite.org/howtocorrupt.html, 2.2). Being open, their identities are not used again.
 */
const held = new Map<FileHandle, string>();

const identityOf = ({ dev, ino }: BigIntStats): string => `${dev} ${ino}`;

const closeDeleted = async (): Promise<void> => {
  for (const file of held.keys()) {
    if ((await file.stat()).nlink > 0 || !held.delete(file)) continue;
    await file.close();
  }
};

/** The index of a log, which has the locks of its database: https://sqlite.org/walformat.html#the_wal_index_file_format */
const isLogIndex = (start: Buffer): boolean =>
  [start.readUInt32LE.bind(start), start.readUInt32BE.bind(start)].some((numberAt) =>
    [0, 48].every((offset) => numberAt(offset) === 3_007_000),
  );

/** Whether a file is the database of a store, also under another name. Throws an error of the file system if it cannot be read. */
export const isDatabase = async (real: string): Promise<boolean> => {
  const found = await lstat(real, { bigint: true }).catch(nothing);
  if (found?.isFile() !== true || found.size < storeDatabaseBytes) return false;
  if ([...held.values()].includes(identityOf(found))) return true;
  const file = await openUnlessDatabase(real);
  await file?.close();
  return file === undefined;
};

const nothing = (): undefined => undefined;

/** Whether SQLite would use a file, which need not exist, with the database of a store, such as its log. */
export const isBesideDatabase = async (real: string): Promise<boolean> => {
  const database = databaseBeside(real);
  return database !== undefined && isDatabase(database);
};

/** Whether a list omits a file: it is the database of a store, or beside it. Files that cannot be read are listed. */
export const isUnlisted = async (real: string): Promise<boolean> => {
  try {
    return (await isBesideDatabase(real)) || ((await hasPages(real)) && (await isDatabase(real)));
  } catch {
    return false;
  }
};

/** Whether the size is one of a database. A list opens no other file: a directory may have a hundred thousand. */
const hasPages = async (real: string): Promise<boolean> => (await lstat(real)).size % 512 === 0;
