// Requests with all of their messages. The feed sends each message once.
import { isChunkRun, isMark, type LogItem, type ShownEvent } from '../protocol.js';
import { fieldsOf, isRecord } from './read-event.js';

/**
 * Returns a function that gives the requests of a log all of their messages, in the order of the log. They are joined when
 * they are read; JSON of such a request is as it was sent.
 */
export const createWholeRequests = (): ((item: LogItem) => LogItem) => {
  const seen: unknown[] = [];
  const whole = <Request extends object>(request: Request): Request => {
    const { messages, ranges } = fieldsOf(request);
    if (!Array.isArray(messages) || !areRanges(ranges)) return request;
    for (const message of messages) seen.push(message);
    return wholeOf(request, () =>
      ranges.flatMap(([from, count]) => seen.slice(from, from + count)),
    );
  };
  return (item) => {
    if (isChunkRun(item)) return item;
    if (!isMark(item)) return whole(item);
    return item.mark !== 'request' || item.sent === undefined
      ? item
      : { ...item, sent: whole(item.sent) };
  };
};

const wholeOf = <Request extends object>(
  item: Request,
  messagesOf: () => readonly unknown[],
): Request => {
  const { ranges: _, ...event } = fieldsOf(item);
  // Only its list of messages is another one.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  return Object.defineProperties(event, {
    messages: { get: messagesOf, enumerable: true },
    toJSON: { value: () => item },
  }) as unknown as Request;
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

export const requestOf = (event: object) => {
  const { messages, options } = fieldsOf(event);
  return {
    messages: Array.isArray(messages) ? messages : [],
    options: isRecord(options) ? options : {},
  };
};
