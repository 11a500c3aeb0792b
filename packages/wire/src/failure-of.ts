import { isMillraceError, MillraceError } from 'millrace';
import { isRecord } from 'millrace/values';
import { inSentence } from './address.js';
import { describe } from './plain-error.js';

interface FailureContext {
  readonly clean: (text: string) => string;
  readonly url?: string | undefined;
}

/**
 * Maps anything that a request threw to a `MillraceError`: a network error by the system code in its chain of causes. It
 * matches by shape, not by class, so it accepts errors of another realm. The thrown value becomes the `cause`.
 */
export const failureOf = (
  vendor: string,
  thrown: unknown,
  context: FailureContext,
): MillraceError => {
  const chain = causesOf(thrown);
  return chain.find(isMillraceError) ?? networkFailure(vendor, thrown, chain, context);
};

/** The thrown value, its chain of causes, and the errors of an `AggregateError`. */
const causesOf = (thrown: unknown, depth = 0): readonly unknown[] => {
  if (!isRecord(thrown) || depth > 5) return [thrown];
  const { errors, cause } = thrown;
  const inner: readonly unknown[] = Array.isArray(errors) ? errors.slice(0, 4) : [cause];
  return [thrown, ...inner.flatMap((it) => causesOf(it, depth + 1))];
};

interface Symptom {
  readonly pattern: RegExp;
  readonly code: MillraceError['code'];
  readonly did: string;
  readonly retryable?: boolean;
  readonly hint?: string;
}

/** Codes of the system, `fetch` and TLS, and names of errors without a code. The first match counts. */
const symptoms: readonly Symptom[] = [
  {
    pattern: /^ECONNREFUSED$/,
    code: 'connection',
    did: 'does not answer',
    hint: 'Is the server running, and is the base URL correct?',
  },
  {
    pattern: /^(ENOTFOUND|EAI_AGAIN)$/,
    code: 'connection',
    did: 'was not found',
    hint: 'Check the base URL and the network.',
  },
  {
    pattern: /CERT|^UNABLE_TO_|^ERR_(TLS|SSL)/,
    code: 'connection',
    did: 'could not be reached over TLS',
    retryable: false,
    hint: 'Check the base URL, and the certificates of this machine.',
  },
  {
    pattern: /TIMED?OUT$|TimeoutError$/,
    code: 'timeout',
    did: 'did not answer in time',
  },
  {
    pattern: /^E(CONN|PIPE|HOST|NET|AI)|^UND_ERR_(SOCKET|CLOSED|DESTROYED|RES)|^ERR_STREAM_/,
    code: 'connection',
    did: 'closed the connection',
  },
  // zlib, the HTTP parser and brotli.
  {
    // The parser of Node 24 has errors without a code.
    pattern: /^(Z_|HPE_|HTTPParserError$|ERR__|UND_ERR_HEADERS_OVERFLOW)/,
    code: 'invalidResponse',
    did: 'sent a malformed response',
  },
  {
    pattern: /^bad port$/,
    code: 'config',
    did: 'cannot be reached, because fetch blocks this port',
    hint: 'Use another port for the server.',
  },
  {
    pattern: /^(unexpected redirect|redirect count exceeded)$/,
    code: 'redirect',
    did: 'redirects the request',
    hint: 'Check the base URL.',
  },
  { pattern: /^ERR_INVALID_URL$/, code: 'config', did: 'has no valid base URL' },
  {
    pattern: /^UND_ERR_INVALID_ARG$/,
    code: 'config',
    did: 'cannot be sent this request',
    hint: 'Check the base URL and the headers.',
  },
  { pattern: /^AbortError$/, code: 'aborted', did: 'was aborted' },
  // The catch-all errors of `fetch`.
  {
    pattern: /^(terminated|fetch failed)$/,
    code: 'connection',
    did: 'could not be reached, or closed the connection',
  },
];

const networkFailure = (
  vendor: string,
  thrown: unknown,
  chain: readonly unknown[],
  { clean, url }: FailureContext,
): MillraceError => {
  const signs = chain.flatMap(signsOf);
  const found = symptoms.find(({ pattern }) => signs.some((sign) => pattern.test(sign)));
  const cause = { cause: thrown };
  if (found === undefined) {
    return new MillraceError(
      'unknown',
      `The request to ${inSentence(vendor)} failed: ${describe(thrown, clean)}`,
      cause,
    );
  }
  const { code, did, hint, retryable, pattern } = found;
  const sign = signs.find((it) => pattern.test(it)) ?? '';
  return new MillraceError(
    code,
    `${vendorAtHost(vendor, url)} ${did} (${sign}).${hint === undefined ? '' : ` ${hint}`}`,
    { ...cause, ...(retryable === undefined ? {} : { retryable }) },
  );
};

/** The name of the vendor, with host and port unless the name includes them. */
const vendorAtHost = (vendor: string, url: string | undefined): string =>
  url === undefined || !URL.canParse(url) || vendor.includes(new URL(url).host)
    ? vendor
    : `${vendor} at ${hostOf(new URL(url))}`;

const hostOf = ({ protocol, hostname, port }: URL): string =>
  `${hostname}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`;

/** The code and names of an error, and its message if `fetch` gives nothing else. */
const signsOf = (thrown: unknown): readonly string[] => {
  if (!isRecord(thrown)) return [];
  const { code, name, message } = thrown;
  const bare = bareMessages.find((it) => it === message);
  return [code, name, bare].filter((it) => typeof it === 'string');
};

const bareMessages: readonly string[] = [
  ...['bad port', 'unexpected redirect', 'redirect count exceeded'],
  ...['fetch failed', 'terminated'],
];
