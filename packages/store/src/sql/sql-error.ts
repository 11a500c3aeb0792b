import { isMillraceError, MillraceError } from 'millrace';
import { isRecord, messageOf } from 'millrace/values';
import { errorCode } from '../files/file-system.js';

/** Prefixes of transient Postgres error codes. An error without such a code is a connection error, also transient. */
const transientCodes = ['08', '25006', '25P03', '40', '53', '55P03', '57P', '58'];

/** The transient codes of errors that end the connection, or come from a server that is not ready. */
const lostCodes = ['08', '25P03', '40003', '57P'];

/** Messages of `pg` about a connection. They have no code. */
const lostMessages =
  /^(?:Connection terminated|timeout e|Query read timeout|Client (?:has encountered a connection error|was closed|network socket))/;

/** Why a statement failed, as far as it matters to whether it may run again. */
export type SqlFailure =
  /** The connection was lost or refused. If the statement was sent, it is not known whether it took effect. */
  | 'connection'
  /** The server does not accept writes: it was a primary before a failover. */
  | 'readOnly'
  /** Other transactions were in the way: a serialization failure or a deadlock. */
  | 'contention'
  /** The server lacks something, such as connections, memory or disk space. */
  | 'resources'
  /** Running the statement again does not help. */
  | 'other';

export const sqlFailure = (error: unknown): SqlFailure => {
  if (isMillraceError(error)) return 'other';
  const state = sqlStateOf(error);
  if (state === undefined) return isConnectionError(error) ? 'connection' : 'other';
  if (beginsWithOne(state, lostCodes)) return 'connection';
  if (state === '25006') return 'readOnly';
  if (state === '40001' || state === '40P01') return 'contention';
  return beginsWithOne(state, ['53', '55P03', '58']) ? 'resources' : 'other';
};

/** Maps a driver error to a `store` error, and redacts the secrets. */
export const toSqlError = (
  error: unknown,
  where: string,
  secrets: readonly string[] = [],
  more = '',
): MillraceError => {
  if (isMillraceError(error)) return error;
  const code = errorCode(error);
  const state = sqlStateOf(error);
  const retryable = state === undefined || beginsWithOne(state, transientCodes);
  const why = withoutSecrets(messageOf(error).replace(/\.$/, ''), secrets);
  const cause = Object.assign(new Error(why), code === undefined ? {} : { code });
  const fix = fixes[code ?? ''] ?? '';
  return new MillraceError('store', `${where} failed: ${why}.${more}${fix}`, { cause, retryable });
};

const fixes: Readonly<Partial<Record<string, string>>> = {
  ECONNREFUSED: ' Check that the server is running, and check the host and the port.',
  ENOTFOUND: ' Check the host name.',
  '25006': ' Check that the URL is that of the primary, not of a replica.',
  '28P01': ' Check the user and the password.',
  '28000': ' Check the user and pg_hba.conf.',
  '3D000': ' Create the database first, or use another one.',
  '42501': ' Allow the user to create a schema in the database, or create the schema yourself.',
  '53100': ' Free some disk space on the database server.',
  '53300': ' Use fewer connections (the option pool.max), or allow more (max_connections).',
};

/** The code that Postgres gave to the error. `EPIPE` looks like one, but comes from the system. */
const sqlStateOf = (error: unknown): string | undefined => {
  const code = errorCode(error);
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !isSystemError(error)
    ? code
    : undefined;
};

const isSystemError = (error: unknown): boolean =>
  isRecord(error) && (error['syscall'] !== undefined || error['errno'] !== undefined);

const isConnectionError = (error: unknown): boolean => {
  // Of a connection to several addresses.
  if (error instanceof AggregateError) return error.errors.some(isConnectionError);
  return isSystemError(error) || (error instanceof Error && lostMessages.test(error.message));
};

const beginsWithOne = (code: string, begins: readonly string[]): boolean =>
  begins.some((begin) => code.startsWith(begin));

const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((rest, secret) => rest.replaceAll(secret, '***'), text);
