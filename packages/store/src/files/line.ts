import { crc32 } from 'node:zlib';
import { isRecord, parsedJson } from '@millrace/core/adapter';

/** What a line of a file is: the head of the file, or something that was written down. */
export type LineKind = 'head' | 'record';

/** Writes a value as a line of JSON with a checksum, so that one that is torn, or that somebody has changed, is known. */
export const writeLine = (kind: LineKind, value: unknown): string => {
  const json = JSON.stringify(value);
  return `{"crc32":"${checksum(json)}","${kind}":${json}}\n`;
};

/** The value of a whole line of this kind, without its end; undefined for any other text. */
export const readLine = (
  kind: LineKind,
  line: Buffer,
): Readonly<Record<string, unknown>> | undefined => {
  const text = line.toString('utf8');
  const head = `{"crc32":"${text.slice(10, 18)}","${kind}":`;
  if (!text.startsWith(head) || !text.endsWith('}')) return undefined;
  const json = text.slice(head.length, -1);
  if (checksum(json) !== text.slice(10, 18)) return undefined;
  const value = parsedJson(json);
  return isRecord(value) ? value : undefined;
};

const checksum = (json: string): string => crc32(json).toString(16).padStart(8, '0');
