import { isMillraceError, MillraceError, type MillraceErrorCode } from '@millrace/core';
import { type Fault, failure } from './failure.js';
import { faultOf } from './fault-of.js';
import { isRecord } from './json.js';
import { describe } from './plain-error.js';
import type { Reception } from './receive.js';
import type { HeadersLike } from './retry-after.js';

/**
 * Makes the error of whatever sending a request or reading its answer has thrown: an SDK's error by its
 * status, type and code, a network's by the code of the system in its chain of causes. It is told by shape, not by
 * class: no SDK has to be loaded for it, and an error may come from another realm. Its `cause` is what was thrown.
 */
export const failureOf = (
  vendor: string,
  thrown: unknown,
  { now, clean }: Pick<Reception, 'now' | 'clean'>,
): MillraceError => {
  const chain = causesOf(thrown);
  const ours = chain.find(isMillraceError);
  if (ours !== undefined) return ours;
  const fault = chain.map(faultThrown).find((it) => it !== undefined);
  return fault === undefined
    ? networkFailure(vendor, thrown, chain, clean)
    : // Before it is shortened: half a secret would not be found.
      failure(vendor, { ...fault, message: clean(fault.message), now: now() });
};

/** What was thrown, its cause, the cause of that, and what an AggregateError gathers. */
const causesOf = (thrown: unknown, depth = 0): readonly unknown[] => {
  if (!isRecord(thrown) || depth > 5) return [thrown];
  const { errors, cause } = thrown;
  const inner: readonly unknown[] = Array.isArray(errors) ? errors.slice(0, 4) : [cause];
  return [thrown, ...inner.flatMap((it) => causesOf(it, depth + 1))];
};

/** An SDK's error has the status, the headers and the body of the response, or only its `error`. */
const faultThrown = (thrown: unknown): (Fault & { readonly message: string }) | undefined => {
  if (!isRecord(thrown)) return undefined;
  const { status, message, error, headers } = thrown;
  if (typeof status !== 'number' || status < 300) return undefined;
  return {
    message: typeof message === 'string' ? bodyIn(message) : '',
    ...(faultOf(error) ?? faultOf({ error })),
    status,
    ...(hasGet(headers) ? { headers } : {}),
  };
};

/** SDKs put the status before a body that they do not understand, or say that there was none. */
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

/** Codes of the system, of `fetch` and of TLS, and names where there is no code. The first that fits counts. */
const symptoms: readonly Symptom[] = [
  {
    pattern: /^ECONNREFUSED$/,
    code: 'connection',
    did: 'does not answer',
    hint: 'Is the server running, and the base URL right?',
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
    did: 'broke off the connection',
  },
  // Of zlib, the HTTP parser and brotli.
  {
    pattern: /^(Z_|HPE_|ERR__)/,
    code: 'invalidResponse',
    did: 'answered with what cannot be read',
  },
  { pattern: /^ERR_INVALID_URL$/, code: 'config', did: 'has no valid base URL' },
  { pattern: /^(AbortError|APIUserAbortError)$/, code: 'aborted', did: 'was left' },
  // What `fetch` and SDKs throw where nothing else tells more.
  {
    pattern: /^(terminated|fetch failed|APIConnectionError)$/,
    code: 'connection',
    did: 'could not be reached, or broke off the connection',
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
      `The request to ${vendor} failed: ${describe(thrown, clean)}`,
      cause,
    );
  }
  const { code, did, hint, retryable, pattern } = found;
  const where = chain.map(placeOf).find((it) => it !== undefined);
  const at = where === undefined ? '' : ` at ${where}`;
  const sign = signs.find((it) => pattern.test(it)) ?? '';
  return new MillraceError(
    code,
    `${vendor} ${did}${at} (${sign}).${hint === undefined ? '' : ` ${hint}`}`,
    { ...cause, ...(retryable === undefined ? {} : { retryable }) },
  );
};

/** Its code and names; its message, where `fetch` says nothing else. */
const signsOf = (thrown: unknown): readonly string[] => {
  if (!isRecord(thrown)) return [];
  const { code, name, message, constructor: made } = thrown;
  const bare = message === 'terminated' || message === 'fetch failed' ? message : undefined;
  const className = typeof made === 'function' ? made.name : undefined;
  return [code, name, className, bare].filter((it) => typeof it === 'string');
};

/** Host and port, as an error of the system names them. */
const placeOf = (thrown: unknown): string | undefined => {
  const { address, port, hostname } = isRecord(thrown) ? thrown : {};
  if (typeof address !== 'string') return typeof hostname === 'string' ? hostname : undefined;
  const host = address.includes(':') ? `[${address}]` : address;
  return typeof port === 'number' ? `${host}:${port}` : host;
};
