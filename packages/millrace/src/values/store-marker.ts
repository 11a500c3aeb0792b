/**
 * The name of the file with which a store marks its directory. Tools that access files refuse a directory with such a file, and
 * all below it: it holds conversations of all users.
 */
export const storeMarker = '.millrace-store';

/** `Mill` in ASCII: the application id of a SQLite database that is a store. */
export const storeApplicationId = 0x4d69_6c6c;

/** How many bytes of a file `isStoreDatabase` looks at. */
export const storeDatabaseBytes = 72;

/**
 * Whether a file is a database of a store, by its first bytes: https://sqlite.org/fileformat.html#the_database_header. It may be
 * in any directory, which has no mark. Tools that access files refuse it, and the files beside it.
 */
export const isStoreDatabase = (start: Uint8Array): boolean => {
  if (start.length < storeDatabaseBytes) return false;
  const isSqlite = sqliteStart.every((byte, at) => start[at] === byte);
  const view = new DataView(start.buffer, start.byteOffset, start.byteLength);
  return isSqlite && view.getUint32(68) === storeApplicationId;
};

const sqliteStart = new TextEncoder().encode('SQLite format 3\0');

/**
 * The path of the database to which SQLite would count a file beside it, by its name: its log, the index of that, or its
 * journal. Undefined for other files. There need not be such a database.
 */
export const databaseBeside = (path: string): string | undefined =>
  // Some file systems do not distinguish upper and lower case.
  /^(.*[^/\\])-(?:wal|shm|journal)$/isu.exec(path)?.[1];
