import { isMillraceError, MillraceError } from '@millrace/core';
import { errorCode } from '../files/file-system.js';

/** Prefixes of transient Postgres error codes. An error without such a code is a connection error, also transient. */
const transientCodes = ['08', '40', '53', '55P03', '57P', '58'];

/** Maps a driver error to a `store` error, and redacts the secrets. */
export const toSqlError = (
  error: unknown,
  where: string,
  secrets: readonly string[] = [],
): MillraceError => {
  if (isMillraceError(error)) return error;
  const code = errorCode(error);
  const isOfPostgres = code !== undefined && /^[0-9A-Z]{5}$/.test(code);
  const retryable = !isOfPostgres || transientCodes.some((begin) => code.startsWith(begin));
  const why = withoutSecrets(messageOf(error), secrets);
  const cause = Object.assign(new Error(why), code === undefined ? {} : { code });
  const fix = fixes[code ?? ''] ?? '';
  return new MillraceError('store', `${where} failed: ${why}.${fix}`, { cause, retryable });
};

const fixes: Readonly<Partial<Record<string, string>>> = {
  ECONNREFUSED: ' Check that the server is running, and check the host and the port.',
  ENOTFOUND: ' Check the host name.',
  '28P01': ' Check the user and the password.',
  '28000': ' Check the user and pg_hba.conf.',
  '3D000': ' Create the database first, or use another one.',
  '42501': ' Allow the user to create a schema in the database, or create the schema yourself.',
  '53100': ' Free some disk space on the database server.',
};

/** The error of a connection to several addresses has an empty message. */
const messageOf = (error: unknown): string => {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map(messageOf).join('; ');
  }
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/\.$/, '');
};

const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((rest, secret) => rest.replaceAll(secret, '***'), text);
