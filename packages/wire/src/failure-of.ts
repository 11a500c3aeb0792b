import { isMillraceError, MillraceError, type MillraceErrorCode } from '@millrace/core';
import { isRecord } from '@millrace/core/adapter';
import { failure, type Fault } from './failure.js';
import { faultOf, faultOfBody } from './fault-of.js';
import { inSentence } from './in-sentence.js';
import { describe } from './plain-error.js';
import type { ReceiveOptions } from './receive.js';
import { recordedAddress } from './request-address.js';
import type { HeadersLike } from './retry-after.js';

/**
 * Maps anything that a request threw to a `MillraceError`: an error of an SDK by its status, type and code, a network
 * error by the system code in its chain of causes. It matches by shape, not by class, so it loads no SDK and accepts
 * errors of another realm. The thrown value becomes the `cause`.
 */
export const failureOf = (
  vendor: string,
  thrown: unknown,
  { now, clean }: Pick<ReceiveOptions, 'now' | 'clean'>,
): MillraceError => {
  const chain = causesOf(thrown);
  const ours = chain.find(isMillraceError);
  if (ours !== undefined) return ours;
  const fault = chain.map(faultOfSdkError).find((it) => it !== undefined);
  return fault === undefined
    ? networkFailure(vendor, thrown, chain, clean)
    : // Redacted before it is truncated: half a secret would not be found.
      failure(vendor, { ...fault, message: clean(fault.message), now: now() });
};

/** The thrown value, its chain of causes, and the errors of an `AggregateError`. */
const causesOf = (thrown: unknown, depth = 0): readonly unknown[] => {
  if (!isRecord(thrown) || depth > 5) return [thrown];
  const { errors, cause } = thrown;
  const inner: readonly unknown[] = Array.isArray(errors) ? errors.slice(0, 4) : [cause];
  return [thrown, ...inner.flatMap((it) => causesOf(it, depth + 1))];
};

/** Errors of SDKs have the status, headers and body of the response, or only the `error` of the body. */
const faultOfSdkError = (thrown: unknown): (Fault & { readonly message: string }) | undefined => {
  if (!isRecord(thrown)) return undefined;
  const { status, message, error, headers } = thrown;
  if (typeof status !== 'number' || status < 300) return undefined;
  return {
    message: typeof message === 'string' ? bodyIn(message) : '',
    ...(faultOfBody(error) ?? faultOf({ error })),
    status,
    ...(hasGet(headers) ? { headers } : {}),
  };
};

/** SDKs put the status in front of a body that they cannot parse, and report a missing body in words. */
const bodyIn = (message: string): string =>
  message.endsWith('status code (no body)') ? '' : message.replace(/^\d{3} /, '');

const hasGet = (value: unknown): value is HeadersLike =>
  isRecord(value) && typeof value['get'] === 'function';

interface Symptom {
  readonly pattern: RegExp;
  readonly code: MillraceErrorCode;
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
    pattern: /^(Z_|HPE_|ERR__)/,
    code: 'invalidResponse',
    did: 'sent a malformed response',
  },
  {
    pattern: /^bad port$/,
    code: 'config',
    did: 'cannot be reached, because fetch blocks this port',
    hint: 'Use another port for the server.',
  },
  { pattern: /^ERR_INVALID_URL$/, code: 'config', did: 'has no valid base URL' },
  { pattern: /^(AbortError|APIUserAbortError)$/, code: 'aborted', did: 'was aborted' },
  // The catch-all errors of `fetch` and SDKs.
  {
    pattern: /^(terminated|fetch failed|APIConnectionError)$/,
    code: 'connection',
    did: 'could not be reached, or closed the connection',
  },
];

const networkFailure = (
  vendor: string,
  thrown: unknown,
  chain: readonly unknown[],
  clean: (text: string) => string,
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
    `${vendorAtHost(vendor, chain)} ${did} (${sign}).${hint === undefined ? '' : ` ${hint}`}`,
    { ...cause, ...(retryable === undefined ? {} : { retryable }) },
  );
};

/** The name of the vendor, with host and port unless the name includes them. */
const vendorAtHost = (vendor: string, chain: readonly unknown[]): string => {
  const requested = chain.map(recordedAddress).find((it) => it !== undefined);
  const place =
    requested === undefined
      ? chain.map(hostInError).find((it) => it !== undefined)
      : hostOf(requested);
  const isNamed = vendor.includes(requested?.host ?? place ?? '');
  return isNamed ? vendor : `${vendor} at ${place}`;
};

const hostOf = ({ protocol, hostname, port }: URL): string =>
  `${hostname}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`;

/** The code and names of an error, and its message if `fetch` gives nothing else. */
const signsOf = (thrown: unknown): readonly string[] => {
  if (!isRecord(thrown)) return [];
  const { code, name, message, constructor: type } = thrown;
  const bare = bareMessages.find((it) => it === message);
  const className = typeof type === 'function' ? type.name : undefined;
  return [code, name, className, bare].filter((it) => typeof it === 'string');
};

const bareMessages: readonly string[] = ['bad port', 'fetch failed', 'terminated'];

/** Host and port in an error of the system. */
const hostInError = (thrown: unknown): string | undefined => {
  const { address, port, hostname } = isRecord(thrown) ? thrown : {};
  if (typeof address !== 'string') return typeof hostname === 'string' ? hostname : undefined;
  const host = address.includes(':') ? `[${address}]` : address;
  return typeof port === 'number' ? `${host}:${port}` : host;
};
