import { isMillraceError, MillraceError } from 'millrace';
import { untrustedText, nearMatches } from 'millrace/values';
import type { Table } from './read-schema.js';

/** An error of the server, as both drivers throw it. */
interface SqlError {
  readonly message: string;
  readonly code: string;
  readonly hint?: unknown;
  readonly position?: unknown;
}

/** Whether the names of tables or columns help to correct the statement. */
export const concernsNames = (error: unknown): boolean =>
  isSqlError(error) && (error.code === '42P01' || error.code === '42703');

/**
 * Converts an error of a statement to one that a model can act on. `before` is the number of characters before the
 * statement. Errors of the connection are not explained to a model, and their messages may contain the host.
 */
export const explainSqlError = (
  error: unknown,
  sql: string,
  before: number,
  tables: readonly Table[],
): MillraceError => {
  if (isMillraceError(error)) return error;
  if (!isSqlError(error)) {
    return new MillraceError('connection', 'The database cannot be reached.', { cause: error });
  }
  const { code, message, hint } = error;
  const [kind = 'invalidRequest', advice = ''] = advices[code] ?? advices[code.slice(0, 2)] ?? [];
  const sentences = [
    `${message.replace(/\.$/u, '')}${placeIn(sql, Number(error.position) - before)}.`,
    typeof hint === 'string' ? hint : '',
    namesFor(error, sql, tables),
    advice,
  ];
  const text = sentences.filter((sentence) => sentence !== '').join(' ');
  return new MillraceError(kind, untrustedText(text), { cause: error, retryable: false });
};

const isSqlError = (error: unknown): error is SqlError =>
  error instanceof Error &&
  'code' in error &&
  typeof error.code === 'string' &&
  /^[0-9A-Z]{5}$/u.test(error.code);

type Advice = readonly [kind: MillraceError['code'], advice?: string];

const one = 'Send one SELECT statement, without a semicolon.';

const advices: Readonly<Partial<Record<string, Advice>>> = {
  '22P02': ['invalidRequest', 'Cast the value, or compare it with one of the type of the column.'],
  '25006': ['refused', 'This tool only reads.'],
  '0A000': ['refused', one],
  '42501': ['refused', 'The database user does not have permission for that.'],
  '42601': ['invalidRequest', one],
  '42703': ['invalidRequest', 'Read the columns with sql_schema.'],
  '42702': ['invalidRequest', 'Write the table before the column: table.column.'],
  '42803': ['invalidRequest', 'Add the column to GROUP BY, or aggregate it.'],
  '42883': ['invalidRequest', 'Check the name of the function and the types of its arguments.'],
  '42P01': ['invalidRequest', 'Read the tables with sql_schema.'],
  '42P11': ['refused', one],
  '55P03': ['conflict', 'Another transaction holds a lock. Try again later.'],
  '57014': ['timeout', 'Filter or aggregate more, or read fewer rows.'],
  '08': ['connection'],
  '28': ['config'],
  '53': ['connection'],
};

/** The line of an error, and the text there. The server counts from 1, in characters. */
const placeIn = (sql: string, position: number): string => {
  const characters = Array.from(sql);
  if (!(position >= 1 && position <= characters.length)) return '';
  const before = characters.slice(0, position - 1).join('');
  const near = characters
    .slice(position - 1, position + 29)
    .join('')
    .split('\n')[0];
  return ` (line ${before.split('\n').length}, at '${near ?? ''}')`;
};

const namesFor = ({ code, message }: SqlError, sql: string, tables: readonly Table[]): string => {
  const missing = /"([^"]+)"|column ([^ ]+) does/u.exec(message);
  const name = (missing?.[1] ?? missing?.[2] ?? '').replace(/^.*\./u, '');
  if (code === '42P01') {
    const names = tables.map((table) => table.name);
    const near = nearMatches(name, names);
    const listed = near.length > 0 ? near : names.slice(0, 20);
    return listed.length === 0 ? '' : `There is: ${[...new Set(listed)].join(', ')}.`;
  }
  if (code !== '42703') return '';
  const words = new Set(sql.toLowerCase().match(/\w+/gu) ?? []);
  return tables
    .filter((table) => words.has(table.name.toLowerCase()))
    .slice(0, 3)
    .map((table) => `${table.name} has ${shownColumns(table)}.`)
    .join(' ');
};

const shownColumns = ({ columns }: Table): string =>
  columns
    .slice(0, 50)
    .map(({ name }) => name)
    .join(', ');
