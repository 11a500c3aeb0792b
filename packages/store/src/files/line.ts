import { crc32 } from 'node:zlib';
import { isRecord, parsedJson } from 'millrace/values';

export type LineKind = 'head' | 'record' | 'appended';

/** Writes a value as a line of JSON with a checksum, which reveals torn and edited lines. */
export const writeLine = (kind: LineKind, value: unknown): string => {
  const json = JSON.stringify(value);
  return `{"crc32":"${checksum(json)}","${kind}":${json}}\n`;
};

/** Reads a line without its newline; undefined if it has another kind or fails its checksum. */
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
