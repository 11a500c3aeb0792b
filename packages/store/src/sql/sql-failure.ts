import { isMillraceError, MillraceError } from '@millrace/core';
import { codeOf } from '../files/failure.js';

/** The beginnings of codes of Postgres that say: not now. What has none is about the connection. */
const passing = ['08', '40', '53', '55P03', '57P', '58'];

/** Makes the `store` error of what a driver has thrown, without the secrets. */
export const sqlFailure = (
  error: unknown,
  where: string,
  secrets: readonly string[] = [],
): MillraceError => {
  if (isMillraceError(error)) return error;
  const code = codeOf(error);
  const isOfPostgres = code !== undefined && /^[0-9A-Z]{5}$/.test(code);
  const retryable = !isOfPostgres || passing.some((begin) => code.startsWith(begin));
  const why = withoutSecrets(messageOf(error), secrets);
  const cause = Object.assign(new Error(why), code === undefined ? {} : { code });
  const fix = fixes[code ?? ''] ?? '';
  return new MillraceError('store', `${where} failed: ${why}.${fix}`, { cause, retryable });
};

const fixes: Readonly<Partial<Record<string, string>>> = {
  ECONNREFUSED: ' Is the server running, and are the host and the port right?',
  ENOTFOUND: ' Is the host right?',
  '28P01': ' Look at the user and the password.',
  '28000': ' Look at the user, and at pg_hba.conf.',
  '3D000': ' Create the database first, or name another one.',
  '42501':
    ' Give the user the right to create a schema in the database, or create the schema for it.',
  '53100': ' Make room on the disk of the database.',
};

/** Several addresses that were tried have no message of their own. */
const messageOf = (error: unknown): string => {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map(messageOf).join('; ');
  }
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/\.$/, '');
};

const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((rest, secret) => rest.replaceAll(secret, '***'), text);
