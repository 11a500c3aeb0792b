import type { JsonItems } from './json-items.js';
import { type Serializer, cachedSerializer } from '@millrace/wire';

/** Messages of a page. */
const pageLength = 16;

const lengthOf = ({ json }: JsonItems): number => json.length;

/**
 * Writes each message of a conversation once, and keeps what was written by pages: to find each of many messages in
 * memory would cost as much as to write it again.
 */
export const pagedSerializer = (
  write: Serializer<JsonItems>,
  join: (passages: readonly JsonItems[]) => JsonItems,
): Serializer<JsonItems> => {
  const writeOne = cachedSerializer(write, lengthOf);
  const writeEach: Serializer<JsonItems> = (messages, naming) =>
    join(messages.map((message) => writeOne([message], naming)));
  const writePage = cachedSerializer(writeEach, lengthOf);
  return (messages, naming) => {
    const passages: JsonItems[] = [];
    let at = 0;
    for (; at + pageLength <= messages.length; at += pageLength) {
      passages.push(writePage(messages.slice(at, at + pageLength), naming));
    }
    return join([...passages, writeEach(messages.slice(at), naming)]);
  };
};
