import { checkOptions, isFunction, type Rule } from 'millrace/values';
import { type Demand, toReadableStream } from 'millrace';
import {
  asapScheduler,
  auditTime,
  buffer,
  bufferCount,
  catchError,
  concat,
  connect,
  EMPTY,
  filter,
  map,
  merge,
  type Observable,
  of,
  type OperatorFunction,
  timer,
} from 'rxjs';

/** Options of `toServerSentEvents`. */
export interface ServerSentEventsOptions {
  /** The data of a final event, such as `[DONE]` for the AI SDK. Default: none. */
  readonly last?: string | undefined;
  /** Returns the id of an event, by its index from 0, for `Last-Event-ID`, or `undefined` for none. Default: events have no ids. */
  readonly idOf?: ((index: number) => string | undefined) | undefined;
}

/** Encodes each value as a server-sent event: a `data:` line with its JSON, and an empty line. */
export const toServerSentEvents = (
  options: ServerSentEventsOptions = {},
): OperatorFunction<object, string> => {
  checkOptions('toServerSentEvents()', options, rules);
  const { last, idOf } = options;
  const idLine = (index: number): string => {
    const id = idOf?.(index);
    return id === undefined ? '' : `id: ${id}\n`;
  };
  return (value$) =>
    concat(
      value$.pipe(map((value, index) => `${idLine(index)}data: ${JSON.stringify(value)}\n\n`)),
      // Without an id: if the call is resumed, other events may get its index.
      last === undefined ? EMPTY : of(`data: ${last}\n\n`),
    );
};

const isLine: Rule = [
  (value) => typeof value === 'string' && !/[\r\n]/.test(value),
  'a string without line breaks',
];

const rules: Readonly<Record<keyof ServerSentEventsOptions, Rule>> = {
  last: isLine,
  idOf: isFunction,
};

/** Encodes strings as the body of a response. Strings that are emitted together become one chunk. */
export const toBody = (
  text$: (demand: Demand) => Observable<string>,
): ReadableStream<Uint8Array<ArrayBuffer>> => {
  const encoder = new TextEncoder();
  return toReadableStream(
    (demand) =>
      text$(demand).pipe(
        // Delay the error until the strings that were emitted with it are flushed.
        catchError((cause: unknown) =>
          timer(0, asapScheduler).pipe(
            map((): never => {
              throw cause;
            }),
          ),
        ),
        connect((each$) =>
          each$.pipe(
            buffer(
              merge(each$.pipe(auditTime(0, asapScheduler)), each$.pipe(bufferCount(mostTogether))),
            ),
          ),
        ),
        map((texts) => texts.join('')),
        filter(Boolean),
        map((text) => encoder.encode(text)),
      ),
    { highWaterMark: 4 },
  );
};

const mostTogether = 16;
