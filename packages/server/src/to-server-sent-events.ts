import { checkOptions, isFunction, type Rule } from 'millrace/values';
import { type Demand, toReadableStream } from 'millrace';
import { asapScheduler, Observable, type OperatorFunction, type Subscription } from 'rxjs';
import { spread } from './parts/spread.js';

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
  return spread(
    (value, index) => [`${idLine(index)}data: ${JSON.stringify(value)}\n\n`],
    // Without an id: if the call is resumed, other events may get its index.
    () => (last === undefined ? [] : [`data: ${last}\n\n`]),
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
): ReadableStream<Uint8Array<ArrayBuffer>> =>
  toReadableStream((demand) => together$(text$(demand)), { highWaterMark: 4 });

const encoder = new TextEncoder();

const mostTogether = 16;

/** Joins the strings of one turn of the event loop, up to 16. The end, or an error, follows them. */
const together$ = (text$: Observable<string>): Observable<Uint8Array<ArrayBuffer>> =>
  new Observable((subscriber) => {
    let texts: string[] = [];
    let turn: Subscription | undefined;
    const flush = (): void => {
      turn?.unsubscribe();
      turn = undefined;
      const joined = texts.join('');
      texts = [];
      if (joined !== '') subscriber.next(encoder.encode(joined));
    };
    subscriber.add(() => turn?.unsubscribe());
    return text$.subscribe({
      next: (text) => {
        if (texts.push(text) >= mostTogether) flush();
        else turn ??= asapScheduler.schedule(flush);
      },
      error: (error: unknown) => {
        flush();
        subscriber.error(error);
      },
      complete: () => {
        flush();
        subscriber.complete();
      },
    });
  });
