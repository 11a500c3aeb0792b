import { defined } from 'millrace/values';
import { MillraceError } from 'millrace';
import { contextCodes, quotaCodes, refusalCodes, statusByCode } from './fault-codes.js';
import { type HeadersLike, retryAfterMs } from './retry-after.js';
import { truncate } from './truncate.js';
import { isVendorError } from './vendor-errors.js';

/** The details of an error that a vendor reports. */
export interface Fault {
  /** The HTTP status; absent for an error inside a stream. */
  readonly status?: number;
  readonly type?: string;
  readonly code?: string | number;
  readonly message?: string;
  readonly headers?: HeadersLike;
  /** The address of the request. */
  readonly url?: string | undefined;
  /** The wait that the body asks for. Headers take precedence. */
  readonly retryAfterMs?: number;
  /** The current time for a date in `retry-after`, in milliseconds. Default: `Date.now()`. */
  readonly now?: number;
}

interface FailureKind {
  readonly code: MillraceError['code'];
  /** The predicate of a sentence whose subject is the vendor. */
  readonly did: string;
  readonly retryable?: boolean;
  /** How to fix it. */
  readonly hint?: string;
}

/** Longer messages are HTML pages or dumps. */
const maxMessageLength = 500;
const maxFactLength = 100;

/**
 * Creates the error for a fault that a vendor reports, by status, type and code. The message only counts for a context
 * that is too long, because several vendors have no code for it. `x-should-retry` overrides `retryable`. An error
 * inside a stream has no status: its type or code implies one, and without these it is a `server` error.
 */
export const failure = (vendor: string, fault: Fault): MillraceError => {
  const kind = kindOf(fault);
  const { status, headers, now = Date.now() } = fault;
  const retryable = retryableBy(headers) ?? kind.retryable;
  const wait =
    (headers && retryAfterMs(headers, now, kind.code === 'rateLimited')) ?? fault.retryAfterMs;
  const requestId = requestIdOf(headers);
  return new MillraceError(kind.code, sentence(vendor, kind, fault), {
    ...defined({ retryable, retryAfterMs: wait, status, requestId }),
  });
};

/** The vendor's request ID, from the response headers. */
export const requestIdOf = (headers: HeadersLike | undefined): string | undefined =>
  headers?.get('x-request-id') ?? headers?.get('request-id') ?? undefined;

const retryableBy = (headers: HeadersLike | undefined): boolean | undefined => {
  const header = headers?.get('x-should-retry');
  return header === 'true' ? true : header === 'false' ? false : undefined;
};

const sentence = (vendor: string, { code, did, hint = '' }: FailureKind, fault: Fault): string => {
  const { status, type, headers } = fault;
  const words = [status, type, fault.code].filter((it) => it !== undefined);
  const facts = [...new Set(words)].filter((word) => String(word).length <= maxFactLength);
  const message = truncate(fault.message?.replaceAll(/\s+/g, ' ').trim() ?? '', maxMessageLength);
  const where = code === 'redirect' ? targetOf(headers) : '';
  return [
    `${vendor} ${did}${where}`,
    facts.length === 0 ? '' : ` (${facts.join(', ')})`,
    // Proxies send HTML pages, which say nothing useful.
    message === '' || message.startsWith('<') ? '.' : `: ${withPeriod(message)}`,
    status === 404 || status === 405 ? pathOf(fault.url) : '',
    hint === '' ? '' : ` ${hint}`,
  ].join('');
};

const withPeriod = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

const kindOf = ({ status, type, code, message = '' }: Fault): FailureKind => {
  const words = [code, type].filter((it) => typeof it === 'string').map((it) => it.toLowerCase());
  const has = (known: ReadonlySet<string>): boolean => words.some((word) => known.has(word));
  if (has(quotaCodes)) return kinds.quota;
  if (has(refusalCodes)) return kinds.refused;
  const impliedStatus =
    status ?? statusFromCode(code) ?? words.map((it) => statusByCode.get(it)).find(Boolean);
  if (has(contextCodes)) return kinds.contextTooLong;
  if (mayHaveKind(impliedStatus) && message !== '') {
    if (isVendorError('rate', message)) return kinds.rateLimited;
    if (isVendorError('refusal', message)) return kinds.refused;
  }
  if (mayBeTooLong(impliedStatus) && isTooLong(message)) return kinds.contextTooLong;
  return impliedStatus === undefined ? kinds.server : kindOfStatus(impliedStatus);
};

const mayBeTooLong = (status: number | undefined): boolean =>
  status === undefined || ![401, 403, 429].includes(status);

/** Several vendors report a limit of the rate with the status of an invalid request, and streams have no status. */
const mayHaveKind = (status: number | undefined): boolean =>
  status === undefined || status === 400 || status === 413 || status === 422;

const isTooLong = (message: string): boolean =>
  !isVendorError('rate', message) && isVendorError('context', message);

/** Some vendors send the status in the code, as a number or a string of digits. */
const statusFromCode = (code: string | number | undefined): number | undefined => {
  const status = Number(code);
  return Number.isInteger(status) && status >= 300 && status <= 599 ? status : undefined;
};

const kinds = {
  contextTooLong: { code: 'contextTooLong', did: 'cannot accept such a long conversation' },
  refused: { code: 'refused', did: 'refused the request because of its content' },
  quota: {
    code: 'rateLimited',
    did: 'has no credit or quota left for this key',
    retryable: false,
  },
  invalid: { code: 'invalidRequest', did: 'rejected the request' },
  auth: {
    code: 'auth',
    did: 'rejected the credentials',
    hint: 'Check the API key and its permissions.',
  },
  missing: {
    code: 'invalidRequest',
    did: 'does not know the model or the URL',
    hint: "Check the model's name and the base URL.",
  },
  timeout: { code: 'timeout', did: 'timed out' },
  conflict: { code: 'conflict', did: 'reports a conflict', retryable: true },
  tooLarge: { code: 'tooLarge', did: 'rejected the request as too large' },
  rateLimited: { code: 'rateLimited', did: 'is limiting the rate of requests' },
  server: { code: 'server', did: 'failed' },
  redirect: {
    code: 'redirect',
    did: 'redirects',
    hint: 'It was not followed, because it would send the prompt there. Correct the base URL.',
  },
  unknown: { code: 'unknown', did: 'answered with an error' },
} as const satisfies Readonly<Record<string, FailureKind>>;

const byStatus: ReadonlyMap<number, FailureKind> = new Map<number, FailureKind>([
  [400, kinds.invalid],
  [401, kinds.auth],
  [402, kinds.quota],
  [403, kinds.auth],
  [404, kinds.missing],
  [405, kinds.missing],
  [408, kinds.timeout],
  [409, kinds.conflict],
  [413, kinds.tooLarge],
  [422, kinds.invalid],
  [429, kinds.rateLimited],
]);

const kindOfStatus = (status: number): FailureKind => {
  const known = byStatus.get(status);
  if (known !== undefined) return known;
  if (status >= 300 && status < 400) return kinds.redirect;
  return status >= 500 && status < 600 ? kinds.server : kinds.unknown;
};

/** The requested path, without the query: a base URL often has too much of the path, or too little. */
const pathOf = (url: string | undefined): string => {
  const path = url === undefined ? undefined : new URL(url).pathname;
  return path === undefined || path.length > maxFactLength ? '' : ` The path was ${path}.`;
};

/** Only the origin: the rest of a URL may contain credentials. */
const targetOf = (headers: HeadersLike | undefined): string => {
  const location = headers?.get('location');
  return location && URL.canParse(location) ? ` to ${new URL(location).origin}` : '';
};
