// Calls as files: exported with their log, and imported to look at them offline.
import { isRecord, stringOf } from '../model/read-event.js';
import type { Run } from '../model/run.js';
import type { CallEntry, LogItem } from '../protocol.js';

const format = 'millrace-devtools-call';

/** The version of the format, the only one that is read. */
const version = 1;

export const exportCall = (call: CallEntry, run: Run | undefined): void => {
  const text = JSON.stringify({ format, version, call, items: run?.log.items() ?? [] });
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = `${call.id.replaceAll(/[^\w-]+/gu, '_')}.json`;
  link.click();
  URL.revokeObjectURL(url);
};

/** Lets the person choose a file, and reads it. */
export const importCall = (add: (call: CallEntry, items: readonly LogItem[]) => void): void => {
  const input = document.createElement('input');
  input.type = 'file';
  input.accept = 'application/json';
  input.addEventListener('change', () => {
    const file = input.files?.[0];
    if (file === undefined) return;
    file.text().then((text) => {
      const read = readCall(text);
      if (read === undefined) throw new Error('This file is no export of a call.');
      add(read.call, read.items);
    }, reportError);
  });
  input.click();
};

interface File {
  readonly format: string;
  readonly call: CallEntry;
  readonly items: readonly LogItem[];
}

/** The call of an exported file; `undefined` for any other file. Throws if the file has another format version. */
export const readCall = (text: string): File | undefined => {
  const value: unknown = JSON.parse(text);
  if (!isRecord(value) || value['format'] !== format) return undefined;
  if (value['version'] !== version) {
    const found = JSON.stringify(value['version']);
    throw new Error(
      `This file has format version ${found}, but these devtools read only format version ${version}.`,
    );
  }
  if (!isFile(value)) return undefined;
  const { call } = value;
  const id = `file ${call.id}`;
  return { ...value, call: { ...call, id, isOpen: true, unforkable: 'It is a file.' } };
};

const isFile = (value: unknown): value is File =>
  isRecord(value) &&
  isRecord(value['call']) &&
  stringOf(value['call']['id']) !== '' &&
  Array.isArray(value['items']);
