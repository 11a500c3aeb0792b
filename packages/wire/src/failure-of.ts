import { isMillraceError, MillraceError, type MillraceErrorCode } from '@millrace/core';
import { isRecord } from '@millrace/core/adapter';
import { type Fault, failure } from './failure.js';
import { askedAddress } from './asked.js';
import { faultOf, faultOfBody } from './fault-of.js';
import { inside } from './inside.js';
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
    ...(faultOfBody(error) ?? faultOf({ error })),
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
  {
    pattern: /^bad port$/,
    code: 'config',
    did: 'cannot be asked, because fetch refuses this port',
    hint: 'Let the server listen on another one.',
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
      `The request to ${inside(vendor)} failed: ${describe(thrown, clean)}`,
      cause,
    );
  }
  const { code, did, hint, retryable, pattern } = found;
  const sign = signs.find((it) => pattern.test(it)) ?? '';
  return new MillraceError(
    code,
    `${withPlace(vendor, chain)} ${did} (${sign}).${hint === undefined ? '' : ` ${hint}`}`,
    { ...cause, ...(retryable === undefined ? {} : { retryable }) },
  );
};

/** What errors call the vendor, and its host and port where that does not name them. */
const withPlace = (vendor: string, chain: readonly unknown[]): string => {
  const asked = chain.map(askedAddress).find((it) => it !== undefined);
  const place =
    asked === undefined ? chain.map(placeOf).find((it) => it !== undefined) : hostOf(asked);
  const isNamed = vendor.includes(asked?.host ?? place ?? '');
  return isNamed ? vendor : `${vendor} at ${place}`;
};

const hostOf = ({ protocol, hostname, port }: URL): string =>
  `${hostname}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`;

/** Its code and names; its message, where `fetch` says nothing else. */
const signsOf = (thrown: unknown): readonly string[] => {
  if (!isRecord(thrown)) return [];
  const { code, name, message, constructor: made } = thrown;
  const bare = bareMessages.find((it) => it === message);
  const className = typeof made === 'function' ? made.name : undefined;
  return [code, name, className, bare].filter((it) => typeof it === 'string');
};

const bareMessages: readonly string[] = ['bad port', 'fetch failed', 'terminated'];

/** Host and port, as an error of the system names them. */
const placeOf = (thrown: unknown): string | undefined => {
  const { address, port, hostname } = isRecord(thrown) ? thrown : {};
  if (typeof address !== 'string') return typeof hostname === 'string' ? hostname : undefined;
  const host = address.includes(':') ? `[${address}]` : address;
  return typeof port === 'number' ? `${host}:${port}` : host;
};
