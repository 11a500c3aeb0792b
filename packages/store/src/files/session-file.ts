import { isMillraceError, MillraceError } from 'millrace';
import { isRecord } from 'millrace/values';
import { type SessionChange, titleOf } from 'millrace/sessions';
import { readHead, writeHead } from './head.js';
import { type LineKind, readLine, writeLine } from './line.js';
import { lineEnd } from './segments.js';

/** The first line of a session file. The second line is the state, or what was appended to it besides messages. */
export interface SessionHead {
  readonly sessionId: string;
  readonly version: number;
  /** That of the state, which a list reads without the state. */
  readonly title?: string;
  /** The places of the messages, if some were appended to a whole state. */
  readonly appended?: AppendedTo;
}

/** A whole state, and the files that have the messages which were appended to it, in order. */
export interface AppendedTo {
  /** The name of the file of the whole state, without its extension. */
  readonly base: string;
  readonly parts: readonly Part[];
}

/** The beginning of a file of messages. */
export type Part = readonly [file: string, bytes: number];

export type AppendedState = Pick<SessionChange, 'head' | 'rest'>;

export const writeState = (state: unknown): string => writeLine('record', state);

export const writeAppended = ({ head, rest }: AppendedState): string =>
  writeLine('appended', { head, rest });

export const writeEntries = (entries: SessionChange['entries']): string =>
  entries.map((entry) => writeLine('record', entry)).join('');

export const writeSessionHead = ({ sessionId, version, title, appended }: SessionHead): string =>
  writeHead({ sessionId, version, title, appended });

/** Reads the state from a session file, and checks that its head has this id and version. */
export const readSessionFile = (path: string, bytes: Buffer, expected: SessionHead): unknown =>
  readSecondLine('record', path, bytes, expected);

/** Reads what was appended to a state besides messages, as `readSessionFile`. */
export const readAppended = (path: string, bytes: Buffer, expected: SessionHead): AppendedState => {
  const { head, rest } = readSecondLine('appended', path, bytes, expected);
  if (!isPlace(head) || !isRest(rest)) throw broken(path);
  return { head, rest };
};

const readSecondLine = (
  kind: LineKind,
  path: string,
  bytes: Buffer,
  { sessionId, version }: SessionHead,
): Readonly<Record<string, unknown>> => {
  const head = headIn(path, bytes);
  if (head.sessionId !== sessionId) throw renamed(path, head.sessionId);
  const start = bytes.indexOf(lineEnd) + 1;
  const isWhole = head.version === version && bytes.indexOf(lineEnd, start) === bytes.length - 1;
  const value = isWhole ? readLine(kind, bytes.subarray(start, -1)) : undefined;
  if (value === undefined) throw broken(path);
  return value;
};

/** Reads messages from the beginning of a file, which has more if a save of them has failed. */
export const readEntries = (path: string, bytes: Buffer): SessionChange['entries'] => {
  const entries: SessionChange['entries'][number][] = [];
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(lineEnd, start);
    const value = end === -1 ? undefined : readLine('record', bytes.subarray(start, end));
    if (!isEntry(value)) throw broken(path);
    entries.push(value);
    start = end + 1;
  }
  return entries;
};

export const headIn = (path: string, bytes: Buffer): SessionHead => {
  const end = bytes.indexOf(lineEnd);
  const head = end === -1 ? undefined : readHead(path, bytes.subarray(0, end));
  if (head === undefined) throw broken(path);
  const { sessionId, version, appended } = head;
  if (typeof sessionId !== 'string' || typeof version !== 'number') throw broken(path);
  if (appended !== undefined && !isAppendedTo(appended)) throw broken(path);
  return { sessionId, version, ...titleOf(head), ...(appended !== undefined && { appended }) };
};

const isAppendedTo = (value: unknown): value is AppendedTo =>
  isRecord(value) &&
  typeof value['base'] === 'string' &&
  Array.isArray(value['parts']) &&
  value['parts'].every(
    (part: unknown) =>
      Array.isArray(part) && typeof part[0] === 'string' && Number.isSafeInteger(part[1]),
  );

/** Loading the state checks its messages. */
const isEntry = (value: unknown): value is SessionChange['entries'][number] =>
  isRecord(value) &&
  (isRecord(value['call']) || (isRecord(value['message']) && isPlace(value['after'])));

export const isPlace = (value: unknown): value is string | null =>
  value === null || typeof value === 'string';

/** Loading the state checks its fields. */
const isRest = (value: unknown): value is SessionChange['rest'] => isRecord(value);

export const renamed = (path: string, sessionId: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `${path} contains the session '${sessionId.slice(0, 100)}', which does not match its name. Do not rename the directories of sessions.`,
  );

export const broken = (path: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `${path} fails its checksum: the file was damaged, truncated or edited. Restore the directory from a backup, or delete it to start over.`,
  );

/** Names the file if what is in it does not fit together. */
export const fittingIn = <T>(path: string, work: () => T): T => {
  try {
    return work();
  } catch (cause) {
    if (!isMillraceError(cause)) throw cause;
    const why = `${path} cannot be read: ${cause.message}`;
    throw new MillraceError('invalidState', why, { cause });
  }
};
