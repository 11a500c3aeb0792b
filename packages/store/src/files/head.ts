import { checkFormat } from 'millrace/values';
import { readLine, writeLine } from './line.js';

/** The version of the format of every file, the only one that is read. */
const fileFormat = 1;

/** The first line of a file, which has the version of its format. */
export const writeHead = (fields: object = {}): string =>
  writeLine('head', { format: fileFormat, ...fields });

/** Reads the first line of a file, without its newline; undefined if it is damaged. Throws if it has another format version. */
export const readHead = (
  path: string,
  line: Buffer,
): Readonly<Record<string, unknown>> | undefined => {
  const head = readLine('head', line);
  if (head !== undefined) checkFormat(path, head['format'], fileFormat);
  return head;
};
