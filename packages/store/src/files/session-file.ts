import { MillraceError } from '@millrace/core';
import { laterFormat } from './damage.js';
import { readLine, writeLine } from './line.js';
import { lineEnd } from './segments.js';

/** What the first line of the file of a session says; the second one is its state. */
export interface SessionHead {
  readonly sessionId: string;
  readonly version: number;
}

/** The form of the files that are written now. */
const format = 1;

/** Writes a state as a line of the file of a session. */
export const writeState = (state: unknown): string => writeLine('record', state);

/** Writes the first line of that file. */
export const writeHead = (head: SessionHead): string => writeLine('head', { format, ...head });

/** The state in the file of a session, which must be the one that the head says. */
export const readSessionFile = (
  path: string,
  bytes: Buffer,
  { sessionId, version }: SessionHead,
): unknown => {
  const head = headIn(path, bytes);
  if (head.sessionId !== sessionId) {
    throw new MillraceError(
      'invalidState',
      `${path} holds the session '${head.sessionId.slice(0, 100)}', and so its name is not its own: do not rename the directories of sessions.`,
    );
  }
  const start = bytes.indexOf(lineEnd) + 1;
  const isWhole = head.version === version && bytes.indexOf(lineEnd, start) === bytes.length - 1;
  const state = isWhole ? readLine('record', bytes.subarray(start, -1)) : undefined;
  if (state === undefined) throw broken(path);
  return state;
};

/** The head of the file of a session that begins with these bytes. */
export const headIn = (path: string, bytes: Buffer): SessionHead => {
  const end = bytes.indexOf(lineEnd);
  const head = end === -1 ? undefined : readLine('head', bytes.subarray(0, end));
  if (head === undefined) throw broken(path);
  if (head['format'] !== format) throw laterFormat(path, head['format']);
  const { sessionId, version } = head;
  if (typeof sessionId !== 'string' || typeof version !== 'number') throw broken(path);
  return { sessionId, version };
};

const broken = (path: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `${path} is not as it was written: the file was damaged, cut or edited. Restore it from a backup, or delete its directory to begin the session anew.`,
  );
