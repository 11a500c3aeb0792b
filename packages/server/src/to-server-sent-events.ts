import { checkOptions, type Rule } from '@millrace/core/adapter';
import { concat, EMPTY, map, of, type OperatorFunction } from 'rxjs';

/** How a stream of server-sent events ends. */
export interface ServerSentEventsOptions {
  /** The data of one more event behind the others: AI SDK has `[DONE]`. Default: none. */
  readonly last?: string;
}

/**
 * Writes each value as one server-sent event: a line `data: ` with its JSON, and an empty line. Emits text;
 * completes and errors as the values do.
 */
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
  'a text of one line',
];

const rules: Readonly<Record<keyof ServerSentEventsOptions, Rule>> = { last: isLine };
