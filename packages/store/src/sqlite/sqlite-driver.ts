// By other names: bundles often begin with an import of their own.
import { createRequire as requireFrom, isBuiltin as isBuiltIn } from 'node:module';
import { fieldOf } from './field-of.js';

/** A value that is bound to a `?` of a statement. */
export type SqlValue = string | number | null | Uint8Array;

export type SqlRow = Readonly<Record<string, unknown>>;

/** A synchronous driver of SQLite. */
export interface SqliteDriver {
  /** Opens a file. Throws what the driver throws; see `sqliteCode`. */
  open(path: string): SqliteConnection;
}

export interface SqliteConnection {
  /** Runs statements without values and without results. */
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
  close(): void;
}

export interface SqliteStatement {
  all(values: readonly SqlValue[]): readonly SqlRow[];
  /** Returns the number of rows that were inserted, updated or deleted. */
  run(values: readonly SqlValue[]): number;
}

/** Whether `openSqlite` has a driver: Node 22.13 or later has SQLite, others need the package `libsql`. */
export const hasSqlite = (): boolean => isBuiltIn('node:sqlite') || isInstalled('libsql');

const isInstalled = (name: string): boolean => {
  try {
    requireFrom(import.meta.url).resolve(name);
    return true;
  } catch {
    return false;
  }
};

/** Resolves to the driver of this version of Node, to that of the package `libsql`, or to undefined. */
export const loadDriver = async (): Promise<SqliteDriver | undefined> =>
  builtInDriver() ?? (await libsqlDriver());

/** The result code of SQLite in an error of a driver: https://sqlite.org/rescode.html */
export const sqliteCode = (error: unknown): number | undefined => {
  const code = fieldOf(error, 'errcode') ?? fieldOf(error, 'rawCode');
  return typeof code === 'number' ? code : undefined;
};

/** The class of databases of a driver, whose statements take values as `Given`. */
type DatabaseClass<Given extends readonly unknown[]> = new (path: string) => {
  exec(sql: string): void;
  prepare(sql: string): {
    all(...values: Given): readonly SqlRow[];
    run(...values: Given): { readonly changes: number };
  };
  close(): void;
};

const driverOf = <Given extends readonly unknown[]>(
  DatabaseOf: DatabaseClass<Given>,
  given: (values: readonly SqlValue[]) => Given,
): SqliteDriver => ({
  open: (path) => {
    const database = new DatabaseOf(path);
    return {
      exec: (sql) => database.exec(sql),
      close: () => database.close(),
      prepare: (sql) => {
        const statement = database.prepare(sql);
        return {
          all: (values) => statement.all(...given(values)),
          run: (values) => statement.run(...given(values)).changes,
        };
      },
    };
  },
});

// ---------------------------------------------------------------- node:sqlite, https://nodejs.org/api/sqlite.html

interface NodeSqlite {
  readonly DatabaseSync: DatabaseClass<readonly SqlValue[]>;
}

/** Exists without a flag since Node 22.13; the function that gets it, since 22.3 and 20.16. */
const builtInDriver = (): SqliteDriver | undefined => {
  const getBuiltinModule: unknown = Reflect.get(process, 'getBuiltinModule');
  const found = withoutWarning((): unknown =>
    typeof getBuiltinModule === 'function'
      ? Reflect.apply(getBuiltinModule, process, ['node:sqlite'])
      : undefined,
  );
  if (!isNodeSqlite(found)) return undefined;
  return driverOf(found.DatabaseSync, (values) => values);
};

const isNodeSqlite = (value: unknown): value is NodeSqlite =>
  fieldOf(value, 'DatabaseSync') !== undefined;

/** Node 22 warns that the module is experimental when it is loaded. Other warnings stay. */
const withoutWarning = <T>(load: () => T): T => {
  const emitWarning: unknown = Reflect.get(process, 'emitWarning');
  const emitOthers = (...given: readonly unknown[]): void => {
    if (String(given[0]).startsWith('SQLite is an experimental feature')) return;
    if (typeof emitWarning === 'function') Reflect.apply(emitWarning, process, given);
  };
  Reflect.set(process, 'emitWarning', emitOthers);
  try {
    return load();
  } finally {
    Reflect.set(process, 'emitWarning', emitWarning);
  }
};

// ---------------------------------------------------------------- libsql, https://github.com/tursodatabase/libsql-js

interface Libsql {
  readonly default: DatabaseClass<readonly [readonly SqlValue[]]>;
}

const libsqlDriver = async (): Promise<SqliteDriver | undefined> => {
  const found = await importLibsql();
  if (!isLibsql(found)) return undefined;
  return driverOf(found.default, (values): readonly [readonly SqlValue[]] => [values]);
};

const isLibsql = (value: unknown): value is Libsql => fieldOf(value, 'default') !== undefined;

const importLibsql = async (): Promise<unknown> => {
  try {
    return await import('libsql');
  } catch (error) {
    // The latter if it was not built for this platform.
    const code = String(fieldOf(error, 'code'));
    if (['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes(code)) return undefined;
    throw error;
  }
};
