// The request and the answer of a prompt as strings, to show and to copy.
import type { Exchange } from '../protocol.js';
import { curlOf, curlOfExchange } from './curl.js';
import { type ModelRequest, rawAnswer, rawRequest } from './requests.js';

/** Strings without keys. Each is made once, when it is needed first. */
export interface Raw {
  /** The last exchange, if the devtools have seen it. */
  readonly exchange: Exchange | undefined;
  readonly asked: () => string;
  /** Absent until there is an answer. */
  readonly answer: (() => string) | undefined;
  readonly curl: () => string;
  /** Whether `curl` sends the request as it was sent. */
  readonly isSent: boolean;
}

/** The server has removed keys from exchanges. */
export const rawOf = (request: ModelRequest, exchanges: readonly Exchange[]): Raw => {
  const exchange = exchanges.at(-1);
  const whole = exchange?.omitted === 0 ? exchange : undefined;
  const { response } = exchange ?? {};
  const hasAnswer = response !== undefined || request.answer !== undefined;
  return {
    exchange,
    asked: once(() => exchange?.body ?? rawRequest(request)),
    answer: hasAnswer ? once(() => response?.body ?? rawAnswer(request) ?? '') : undefined,
    curl: once(() => (whole === undefined ? curlOf(request) : curlOfExchange(whole))),
    isSent: whole !== undefined,
  };
};

const once = (make: () => string): (() => string) => {
  let made: string | undefined;
  return () => (made ??= make());
};

const isRedirect = (exchange: Exchange | undefined): boolean =>
  [307, 308].includes(exchange?.response?.status ?? 0);

/** Where the last exchange was sent, which attempt it was, and whether the provider had redirected it. */
export const wayOf = (exchanges: readonly Exchange[]): string => {
  const attempts = exchanges.filter((_, index) => !isRedirect(exchanges[index - 1])).length;
  return [
    `POST ${exchanges.at(-1)?.url ?? ''}`,
    ...(attempts > 1 ? [`attempt ${attempts}`] : []),
    ...(isRedirect(exchanges.at(-2)) ? ['redirected'] : []),
  ].join(' · ');
};
