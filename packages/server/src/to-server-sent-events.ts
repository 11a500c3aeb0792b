import { checkOptions, type Rule } from '@millrace/core/values';
import { concat, EMPTY, map, of, type OperatorFunction } from 'rxjs';

/** Options of `toServerSentEvents`. */
export interface ServerSentEventsOptions {
  /** The data of a final event, such as `[DONE]` for the AI SDK. Default: none. */
  readonly last?: string;
}

/** Encodes each value as a server-sent event: a `data:` line with its JSON, and an empty line. */
export const toServerSentEvents = (
  options: ServerSentEventsOptions = {},
): OperatorFunction<object, string> => {
  checkOptions('toServerSentEvents()', options, rules);
  const { last } = options;
  return (value$) =>
    concat(
      value$.pipe(map((value) => written(JSON.stringify(value)))),
      last === undefined ? EMPTY : of(written(last)),
    );
};

const written = (data: string): string => `data: ${data}\n\n`;

const isLine: Rule = [
  (value) => typeof value === 'string' && !/[\r\n]/.test(value),
  'a string without line breaks',
];

const rules: Readonly<Record<keyof ServerSentEventsOptions, Rule>> = { last: isLine };
