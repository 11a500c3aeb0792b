import { MillraceError } from '@millrace/core';
import { titleOf } from '@millrace/core/sessions';
import { readHead, writeHead } from './head.js';
import { readLine, writeLine } from './line.js';
import { lineEnd } from './segments.js';

/** The first line of a session file; the second line is the state. */
export interface SessionHead {
  readonly sessionId: string;
  readonly version: number;
  /** That of the state, which a list reads without the state. */
  readonly title?: string;
}

export const writeState = (state: unknown): string => writeLine('record', state);

export const writeSessionHead = ({ sessionId, version, title }: SessionHead): string =>
  writeHead({ sessionId, version, title });

/** Reads the state from a session file, and checks that its head has this id and version. */
export const readSessionFile = (
  path: string,
  bytes: Buffer,
  { sessionId, version }: SessionHead,
): unknown => {
  const head = headIn(path, bytes);
  if (head.sessionId !== sessionId) {
    throw new MillraceError(
      'invalidState',
      `${path} contains the session '${head.sessionId.slice(0, 100)}', which does not match its name. Do not rename the directories of sessions.`,
    );
  }
  const start = bytes.indexOf(lineEnd) + 1;
  const isWhole = head.version === version && bytes.indexOf(lineEnd, start) === bytes.length - 1;
  const state = isWhole ? readLine('record', bytes.subarray(start, -1)) : undefined;
  if (state === undefined) throw broken(path);
  return state;
};

export const headIn = (path: string, bytes: Buffer): SessionHead => {
  const end = bytes.indexOf(lineEnd);
  const head = end === -1 ? undefined : readHead(path, bytes.subarray(0, end));
  if (head === undefined) throw broken(path);
  const { sessionId, version } = head;
  if (typeof sessionId !== 'string' || typeof version !== 'number') throw broken(path);
  return { sessionId, version, ...titleOf(head) };
};

const broken = (path: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `${path} fails its checksum: the file was damaged, truncated or edited. Restore the directory from a backup, or delete it to start over.`,
  );
