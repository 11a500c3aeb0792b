import { checkOptions, isFunction, type Rule } from 'millrace/values';
import { type Demand, toReadableStream } from 'millrace';
import { endWith, map, type Observable, type OperatorFunction } from 'rxjs';
import { type JoinOptions, joinTexts } from './join-texts.js';

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
  return (value$) => {
    const text$ = value$.pipe(
      map((value, index) => `${idLine(index)}data: ${JSON.stringify(value)}\n\n`),
    );
    return last === undefined ? text$ : text$.pipe(endWith(lastEvent(last)));
  };
};

/** The final event, without an id: if the call is resumed, other events may get its index. */
export const lastEvent = (data: string): string => `data: ${data}\n\n`;

const isLine: Rule = [
  (value) => typeof value === 'string' && !/[\r\n]/.test(value),
  'a string without line breaks',
];

const rules: Readonly<Record<keyof ServerSentEventsOptions, Rule>> = {
  last: isLine,
  idOf: isFunction,
};

export interface BodyOptions extends Pick<JoinOptions, 'heartbeatMs' | 'last'> {
  /** Called once, at its end, even if it is cancelled before it is read. */
  readonly onEnd?: ((how: 'ended' | 'failed' | 'cancelled') => void) | undefined;
}

/**
 * Encodes strings as the body of a response. Strings that are emitted together become one chunk. With `heartbeatMs`, it sends a comment
 * at these intervals while it is read, so proxies do not close a silent stream.
 */
export const toBody = (
  text$: (demand: Demand) => Observable<string>,
  { onEnd, ...joined }: BodyOptions = {},
): ReadableStream<Uint8Array<ArrayBuffer>> =>
  toReadableStream((demand) => text$(demand).pipe(joinTexts(encode, { ...joined, demand })), {
    highWaterMark: 4,
    onEnd,
  });

const encoder = new TextEncoder();
const encode = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text);
