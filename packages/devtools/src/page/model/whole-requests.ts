// Requests with all of their messages. The feed sends each message once.
import { isChunkRun, isMark, type LogItem, type ShownEvent } from '../protocol.js';
import { anyFields, isRecord } from './read-event.js';

/**
 * Returns a function that gives the requests of a log all of their messages, in the order of the log. They are joined when
 * they are read; JSON of such a request is as it was sent.
 */
export const createWholeRequests = (): ((item: LogItem) => LogItem) => {
  const seen: unknown[] = [];
  return (item) => {
    if (isMark(item) || isChunkRun(item)) return item;
    const { messages, ranges } = anyFields(item);
    if (!Array.isArray(messages) || !areRanges(ranges)) return item;
    for (const message of messages) seen.push(message);
    return wholeOf(item, () => ranges.flatMap(([from, count]) => seen.slice(from, from + count)));
  };
};

const wholeOf = (item: ShownEvent, messagesOf: () => readonly unknown[]): ShownEvent => {
  const { ranges: _, ...event } = item;
  // Only its list of messages is another one.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  return Object.defineProperties(event, {
    messages: { get: messagesOf, enumerable: true },
    toJSON: { value: () => item },
  }) as unknown as ShownEvent;
};

type Range = readonly [from: number, count: number];

/** A file may hold anything. */
const areRanges = (value: unknown): value is readonly Range[] =>
  Array.isArray(value) &&
  value.every(
    (range) =>
      Array.isArray(range) &&
      range.length === 2 &&
      range.every((each: unknown) => Number.isSafeInteger(each) && Number(each) >= 0),
  );

export const isRequest = (event: ShownEvent): boolean => requestTypes.has(event.type);

const requestTypes: ReadonlySet<string> = new Set(['preReasoning', 'preSummary', 'prePlanning']);

export const requestOf = (event: ShownEvent) => {
  const { messages, options } = anyFields(event);
  return {
    messages: Array.isArray(messages) ? messages : [],
    options: isRecord(options) ? options : {},
  };
};
