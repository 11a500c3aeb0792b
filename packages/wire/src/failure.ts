import { MillraceError, type MillraceErrorCode } from '@millrace/core';
import {
  contextMessages,
  contextWords,
  quotaWords,
  refusalWords,
  statusOfWord,
} from './fault-words.js';
import { askedAddress } from './asked.js';
import { type HeadersLike, retryAfterMs } from './retry-after.js';
import { shortened } from './shortened.js';

/** What a vendor tells of an error. */
export interface Fault {
  /** The HTTP status; none for an error that is told in a stream. */
  readonly status?: number;
  readonly type?: string;
  readonly code?: string | number;
  readonly message?: string;
  readonly headers?: HeadersLike;
  /** How long the body of the error asks to wait; the headers go first. */
  readonly retryAfterMs?: number;
  /** The time that a date in `retry-after` counts from, in milliseconds. Default: now. */
  readonly now?: number;
}

/** What a fault means. */
interface Verdict {
  readonly code: MillraceErrorCode;
  /** What the vendor did, for a sentence that begins with its name. */
  readonly did: string;
  readonly retryable?: boolean;
  /** How to put it right. */
  readonly hint?: string;
}

/** A longer message is a page or a dump. */
const longestMessage = 500;
const longestWord = 100;

/**
 * Makes the error of what a vendor reports: by status, type and code. The text of its message counts only for a
 * context that is too long, which several vendors say in no other way. `x-should-retry` has the last word on
 * whether it is `retryable`. An error without a status, told in a stream, is what its type or code would be as a
 * status; one that tells nothing is the server's own.
 */
export const failure = (vendor: string, fault: Fault): MillraceError => {
  const verdict = verdictOn(fault);
  const { status, headers, now = Date.now() } = fault;
  const retryable = retryableBy(headers) ?? verdict.retryable;
  const wait = (headers && retryAfterMs(headers, now)) ?? fault.retryAfterMs;
  const requestId = requestIdOf(headers);
  return new MillraceError(verdict.code, sentence(vendor, verdict, fault), {
    ...(retryable === undefined ? {} : { retryable }),
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
    ...(status === undefined ? {} : { status }),
    ...(requestId === undefined ? {} : { requestId }),
  });
};

/** What a vendor calls the request, from the headers of its response. */
export const requestIdOf = (headers: HeadersLike | undefined): string | undefined =>
  headers?.get('x-request-id') ?? headers?.get('request-id') ?? undefined;

/** The vendors' own word on whether to send the request again. */
const retryableBy = (headers: HeadersLike | undefined): boolean | undefined => {
  const asked = headers?.get('x-should-retry');
  return asked === 'true' ? true : asked === 'false' ? false : undefined;
};

const sentence = (vendor: string, { code, did, hint = '' }: Verdict, fault: Fault): string => {
  const { status, type, headers } = fault;
  const words = [status, type, fault.code].filter((it) => it !== undefined);
  const facts = [...new Set(words)].filter((word) => String(word).length <= longestWord);
  const said = shortened(fault.message?.replaceAll(/\s+/g, ' ').trim() ?? '', longestMessage);
  const where = code === 'redirect' ? targetOf(headers) : '';
  return [
    `${vendor} ${did}${where}`,
    facts.length === 0 ? '' : ` (${facts.join(', ')})`,
    // A page of HTML, as proxies send it, tells nothing.
    said === '' || said.startsWith('<') ? '.' : `: ${ended(said)}`,
    status === 404 || status === 405 ? pathOf(headers) : '',
    hint === '' ? '' : ` ${hint}`,
  ].join('');
};

const ended = (sentence: string): string => (/[.!?]$/.test(sentence) ? sentence : `${sentence}.`);

const verdictOn = ({ status, type, code, message = '' }: Fault): Verdict => {
  const words = [code, type].filter((it) => typeof it === 'string').map((it) => it.toLowerCase());
  const has = (known: ReadonlySet<string>): boolean => words.some((word) => known.has(word));
  if (has(quotaWords)) return verdicts.quota;
  if (has(refusalWords)) return verdicts.refused;
  const meant =
    status ?? statusOfCode(code) ?? words.map((it) => statusOfWord.get(it)).find(Boolean);
  if (has(contextWords) || (mayBeTooLong(meant) && saysTooLong(message))) {
    return verdicts.contextTooLong;
  }
  return meant === undefined ? verdicts.server : verdictOnStatus(meant);
};

const mayBeTooLong = (status: number | undefined): boolean =>
  status === undefined || ![401, 403, 429].includes(status);

const saysTooLong = (message: string): boolean => {
  const begun = message.slice(0, 2_000);
  return contextMessages.some((pattern) => pattern.test(begun));
};

/** Some vendors send the status as the code, as a number or in digits. */
const statusOfCode = (code: string | number | undefined): number | undefined => {
  const status = Number(code);
  return Number.isInteger(status) && status >= 300 && status <= 599 ? status : undefined;
};

const verdicts = {
  contextTooLong: { code: 'contextTooLong', did: 'cannot take so long a conversation' },
  refused: { code: 'refused', did: 'refused the request for its content' },
  quota: {
    code: 'rateLimited',
    did: 'has no credit or quota left for this key',
    retryable: false,
  },
  invalid: { code: 'invalidRequest', did: 'did not take the request' },
  auth: {
    code: 'auth',
    did: 'did not take the credentials',
    hint: 'Check the API key, and what it may use.',
  },
  missing: {
    code: 'invalidRequest',
    did: 'knows no such model or address',
    hint: "Check the model's name and the base URL.",
  },
  timeout: { code: 'timeout', did: 'timed out' },
  conflict: { code: 'conflict', did: 'reports a conflict', retryable: true },
  tooLarge: { code: 'tooLarge', did: 'takes no request of this size' },
  rateLimited: { code: 'rateLimited', did: 'wants fewer requests' },
  server: { code: 'server', did: 'failed' },
  redirect: {
    code: 'redirect',
    did: 'redirects',
    hint: 'It was not followed, as the prompt would go there. Set the base URL to the right address.',
  },
  unknown: { code: 'unknown', did: 'answered with an error' },
} as const satisfies Readonly<Record<string, Verdict>>;

const byStatus: ReadonlyMap<number, Verdict> = new Map<number, Verdict>([
  [400, verdicts.invalid],
  [401, verdicts.auth],
  [402, verdicts.quota],
  [403, verdicts.auth],
  [404, verdicts.missing],
  [405, verdicts.missing],
  [408, verdicts.timeout],
  [409, verdicts.conflict],
  [413, verdicts.tooLarge],
  [422, verdicts.invalid],
  [429, verdicts.rateLimited],
]);

const verdictOnStatus = (status: number): Verdict => {
  const known = byStatus.get(status);
  if (known !== undefined) return known;
  if (status >= 300 && status < 400) return verdicts.redirect;
  return status >= 500 && status < 600 ? verdicts.server : verdicts.unknown;
};

/** What was asked, without the query: a base URL is often given with too much of the path, or too little. */
const pathOf = (headers: HeadersLike | undefined): string => {
  const path = askedAddress(headers)?.pathname;
  return path === undefined || path.length > longestWord ? '' : ` The path was ${path}.`;
};

/** Only the origin: the rest of an address may hold credentials. */
const targetOf = (headers: HeadersLike | undefined): string => {
  const location = headers?.get('location');
  return location && URL.canParse(location) ? ` to ${new URL(location).origin}` : '';
};
