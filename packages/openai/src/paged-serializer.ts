import type { JsonItems } from './json-items.js';
import { cachedSerializer, type Serializer } from '@millrace/wire';

const pageLength = 16;

const lengthOf = ({ json }: JsonItems): number => json.length;

/**
 * Caches each serialized message, and the messages in pages of 16: looking up each message of a long conversation would
 * cost as much as serializing it again.
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
