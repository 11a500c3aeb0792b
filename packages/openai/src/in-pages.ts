import type { Passage } from './passage.js';
import { type Write, writeOnce } from '@millrace/wire';

/** Messages of a page. */
const pageLength = 16;

const lengthOf = ({ json }: Passage): number => json.length;

/**
 * Writes each message of a conversation once, and keeps what was written by pages: to find each of many messages in
 * memory would cost as much as to write it again.
 */
export const inPages = (
  write: Write<Passage>,
  join: (passages: readonly Passage[]) => Passage,
): Write<Passage> => {
  const writeOne = writeOnce(write, lengthOf);
  const writeEach: Write<Passage> = (messages, naming) =>
    join(messages.map((message) => writeOne([message], naming)));
  const writePage = writeOnce(writeEach, lengthOf);
  return (messages, naming) => {
    const passages: Passage[] = [];
    let at = 0;
    for (; at + pageLength <= messages.length; at += pageLength) {
      passages.push(writePage(messages.slice(at, at + pageLength), naming));
    }
    return join([...passages, writeEach(messages.slice(at), naming)]);
  };
};
